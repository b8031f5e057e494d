"""Types of objects inferred from container elements, annotations, and names."""

from __future__ import annotations

import pytest
from support.linked import facts as facts_of
from support.linked import marked, project

from fsrace_lint.syntax.annotations import EACH, VALUE, parts_of
from fsrace_lint.syntax.unparse import spell

IMPORTS = "from lib import *\nfrom typing import *\nfrom typing import cast\n"

LIB = """
import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Type, Union

class Base:
    def m(self): pass
class One(Base):
    def one(self): pass
class Two(Base):
    def two(self): pass
class Other:
    def m(self): pass

def unknown(x): return x.y
def maybe(k):
    if k:
        return One()
    raise ValueError
def nothing_else(k):
    if k:
        return One()
    return None
def either(k):
    if k == 1:
        return One()
    with k:
        return Two()
def unlike(k):
    if k:
        return One()
    return Other()
def first(k):
    if k:
        return One()
    return Two()
def functions(k):
    if k:
        return maybe
    return either
def branches(k):
    if k:
        return maybe
    elif k.x:
        return either
def pair(): return One(), Two()
def listed(): return [One()]
def declared(x) -> One: return unknown(x)
def declared_pair(x) -> Tuple[One, Other]: return unknown(x)
def declared_type(x) -> Type[One]: return unknown(x)
def quoted(x) -> "Optional[One]": return unknown(x)
def anything(x) -> Any: return unknown(x)
def nothing(x) -> None: return unknown(x)
def generated() -> Iterator[One]: yield unknown(1)
def generating(): yield One()
@contextlib.contextmanager
def managed() -> Iterator[One]: yield unknown(1)
class Manager:
    def __enter__(self): return One()
    def __exit__(self, *exc): pass
class Itself:
    def __enter__(self): return self
    def __exit__(self, *exc): pass
    def m(self): pass

class Fields:
    one: One
    two: "Two" = None
    ones: List[One]
    table: Dict[str, One]
    maybe: Optional[Sequence[One]] = None
    def __init__(self, given):
        self.given: One = given
        self.items: List[One] = []
        self.shown = [One(), Two()]
        self.both = unknown(given)
        given.hidden: Two = 1
        def inner(self):
            self.inside: One = given
    @property
    def parts(self) -> List[One]: return unknown(self)
    @property
    def displayed(self): return [One()]
    def method(self): pass
class Heir(Fields): pass
class DataLoader:
    def load(self): pass
class Twice:
    def m(self): pass
"""
TWICE = "class Twice:\n    def m(self): pass\n"


def denoted(text: str) -> str | None:
    """What the marked expression in a file denotes; an object is shown by its class."""
    event = marked(linked := project({"lib.py": LIB, "other.py": TWICE, "main.py": f"{IMPORTS}{text}"}))
    resolver = linked.flows.resolver
    return resolver.type_name(resolver.symbol(event.call.arguments[0], event.state.scope))


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("maybe(a).one", "lib.One.one"),
        ("nothing_else(a).one", "lib.One.one"),
        ("either(a).m", "lib.Base.m"),
        ("either(a)", "lib.Base"),
        ("unlike(a)", "lib.One"),
        ("first(a).m", "lib.Base.m"),
        ("functions(a)", "lib.either"),
        ("branches(a)", None),
        ("unknown(a)", None),
        ("declared(a).one", "lib.One.one"),
        ("declared_type(a)", "lib.One"),
        ("declared_type(a)()", "lib.One"),
        ("quoted(a)", "lib.One"),
        ("anything(a)", None),
        ("nothing(a)", None),
        ("generated()", None),
        ("pair()[0]", "lib.One"),
        ("pair()[1]", "lib.Two"),
        ("pair()[a]", "lib.Base"),
        ("pair()[-1]", "lib.Base"),
        ("pair()[2]", None),
        ("declared_pair(a)[1]", "lib.Other"),
        ("listed()[a]", "lib.One"),
        ("unknown(a)[0]", None),
        ("a[0]", None),
        ("[One(), Two()][a]", "lib.Base"),
        ("[One(), Other()][a]", "lib.One"),
        ("[One(), unknown(a)][1]", None),
        ("[*a, One()][0]", "lib.One"),
        ("[One(x) for x in a][0]", "lib.One"),
        ("[x for x in listed()][0]", "lib.One"),
        ("[One(y) for x in a for y in x][0]", None),
        ("(a or [One()])[0]", "lib.One"),
        ("([One()] if a else [Two()])[0]", "lib.Base"),
        ("list(listed())[0]", "lib.One"),
        ("list()[0]", None),
        ("Fields(a).one", "lib.One"),
        ("Heir(a).one", "lib.One"),
        ("Fields(a).two", "lib.Two"),
        ("Fields(a).given", "lib.One"),
        ("Fields(a).both", None),
        ("Fields(a).hidden", None),
        ("Fields(a).inside", None),
        ("Fields(a).ones[0]", "lib.One"),
        ("Fields(a).items[0]", "lib.One"),
        ("Fields(a).shown[1]", "lib.Two"),
        ("Fields(a).maybe[0]", "lib.One"),
        ("Fields(a).table[b]", "lib.One"),
        ("Fields(a).parts[0]", "lib.One"),
        ("Fields(a).displayed[0]", "lib.One"),
        ("Fields(a).method[0]", None),
        ("Fields(a).absent[0]", None),
        ("a.absent[0]", None),
        ("One[0]", "lib.One"),
    ],
)
def test_results_fields_and_elements(expr: str, expected: str | None) -> None:
    assert denoted(f"def main(a, b):\n    mark({expr})\n") == expected


@pytest.mark.parametrize(
    ("annotation", "part", "expected"),
    [
        ("One", "a", "lib.One"),
        ("List[One]", "a[0]", "lib.One"),
        ("list[One] | None", "a[0]", "lib.One"),
        ("Optional[List[One]]", "a[0]", "lib.One"),
        ("Tuple[One, ...]", "a[3]", "lib.One"),
        ("Tuple[One, Two]", "a[1]", "lib.Two"),
        ("Tuple[One, Two]", "a[b]", "lib.Base"),
        ("Dict[str, One]", "a['x']", "lib.One"),
        ("List[Dict[str, One]]", "a[0]['x']", "lib.One"),
        ("Type[One]", "a", "lib.One"),
        ("Type[One]", "a()", "lib.One"),
        ("Type[Any]", "a()", None),
        ("Union[int, One]", "a", "lib.One"),
        ("Any", "a", None),
        ("Any", "a.save", None),
        ("One", "a[0]", None),
        ("Unheard[One]", "a[0]", None),
    ],
)
def test_annotated_parameters(annotation: str, part: str, expected: str | None) -> None:
    assert denoted(f"def main(a: {annotation}, b):\n    mark({part})\n") == expected


@pytest.mark.parametrize(("depth", "expected"), [(2, "lib.One"), (20, None)])
def test_nesting_depth_of_elements_is_limited(depth: int, expected: str | None) -> None:
    inside = "[" * depth + "One()" + "]" * depth + "[0]" * depth
    assert denoted(f"def main(a, b):\n    mark({inside})\n") == expected


@pytest.mark.parametrize(
    ("loop", "expr", "expected"),
    [
        ("for x in listed()", "x", "lib.One"),
        ("for x in generated()", "x", "lib.One"),
        ("for x in generating()", "x", None),
        ("for x in [One(), Two()]", "x.m", "lib.Base.m"),
        ("for x in a", "x", None),
        ("for x, y in [(One(), Two())]", "y", "lib.Two"),
        ("for i, x in enumerate(listed())", "x", "lib.One"),
        ("for i, x in enumerate(listed())", "i", None),
        ("for i, x in enumerate()", "x", None),
        ("for x, y in zip(listed(), [Two()])", "y", "lib.Two"),
        ("for x, y in zip(listed())", "y", None),
        ("for x in zip(listed())", "x", None),
        ("for x in Fields(a).table", "x", None),
        ("for x in Fields(a).table.values()", "x", "lib.One"),
        ("for k, x in Fields(a).table.items()", "x", "lib.One"),
        ("for k, x in Fields(a).table.items()", "k", None),
        ("for x in Fields(a).ones", "x", "lib.One"),
        ("for x in Fields(a).parts", "x", "lib.One"),
        ("for x in [y for y in Fields(a).items]", "x", "lib.One"),
        ("with Manager() as x", "x", "lib.One"),
        ("with Itself() as x", "x.m", "lib.Itself.m"),
        ("with managed() as x", "x", "lib.One"),
        ("with One() as x", "x", "lib.One"),
        ("with a as x", "x", None),
        ("with unknown(a) as x", "x", None),
        ("with open(a) as x", "x", "io.IOBase"),
    ],
)
def test_loops_and_contexts(loop: str, expr: str, expected: str | None) -> None:
    assert denoted(f"def main(a, b):\n    {loop}:\n        mark({expr})\n") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = listed() if a else [Two()]\n    mark(x[0])", "lib.Base"),
        ("x = listed()\n    if a:\n        x = [Two()]\n    mark(x[0])", "lib.Base"),
        ("if a:\n        y = listed()\n    mark(y[0])", "lib.One"),
        ("x, y = pair()\n    mark(y)", "lib.Two"),
        ("(x, _), y = [pair(), 1]\n    mark(x)", "lib.One"),
        ("x, *y = pair()\n    mark(x)", "lib.One"),
        ("*y, x = pair()\n    mark(x)", None),
        ("x, y = pair(), 1\n    mark(x[1])", "lib.Two"),
        ("for x in [pair()]:\n        mark(x[1])", "lib.Two"),
        ("x = cast(One, a)\n    mark(x)", "lib.One"),
        ("x = cast(a)\n    mark(x)", None),
    ],
)
def test_local_variables(text: str, expected: str | None) -> None:
    assert denoted(f"def main(a, b):\n    {text}\n") == expected


@pytest.mark.parametrize(
    ("parameter", "expr", "expected"),
    [
        ("kind=One", "kind()", "lib.One"),
        ("make=maybe", "make(1)", "lib.One"),
        ("one=One()", "one", "lib.One"),
        ("one=None", "one", None),
        ("one: Two = One()", "one", "lib.Two"),
        ("*one: One", "one", None),
        ("data_loader", "data_loader.load", "lib.DataLoader.load"),
        ("_data_loader", "_data_loader.load", "lib.DataLoader.load"),
        ("x", "x.data_loader.load", "lib.DataLoader.load"),
        ("data_loader", "data_loader.absent", None),
        ("data_loader: Any", "data_loader.load", None),
        ("data_loader", "data_loader", None),
        ("x", "x[0].load", None),
        ("twice", "twice.m", None),
    ],
)
def test_defaults_and_namesakes(parameter: str, expr: str, expected: str | None) -> None:
    assert denoted(f"def main({parameter}):\n    mark({expr})\n") == expected


@pytest.mark.parametrize(
    ("annotation", "step", "expected"),
    [
        ("List[X]", EACH, ["X"]),
        ("List[X]", 3, ["X"]),
        ("Dict[X, Y]", EACH, ["X"]),
        ("Dict[X, Y]", VALUE, ["Y"]),
        ("Tuple[X, Y]", 1, ["Y"]),
        ("Tuple[X, Y]", 2, []),
        ("Tuple[X, Y]", EACH, ["X", "Y"]),
        ("Tuple[X, ...]", 7, ["X"]),
        ("Optional[List[X]]", EACH, ["X"]),
        ("Union[List[X], Set[Y]]", EACH, ["X", "Y"]),
        ("list[X] | set[Y]", EACH, ["X", "Y"]),
        ("typing.Sequence[X]", EACH, ["X"]),
        ("List", EACH, []),
        ("Thing[X]", EACH, []),
    ],
)
def test_element_annotations(annotation: str, step: int | str, expected: list[str]) -> None:
    facts = facts_of(f"def f() -> {annotation}: pass\n")
    returns = facts.functions[1].returns
    assert returns is not None
    assert [spell(part) for part in parts_of(returns, step)] == expected


def test_annotated_class_fields() -> None:
    facts = facts_of(LIB)
    fields = next(class_ for class_ in facts.classes if class_.name == "Fields")
    assert [name for name, _ in fields.annotated] == [
        "one",
        "two",
        "ones",
        "table",
        "maybe",
        "given",
        "items",
    ]
    assert all(class_.annotated == () for class_ in facts.classes if class_ is not fields)


def test_none_return_annotation_is_dropped() -> None:
    assert facts_of("def f() -> None: pass\n").functions[1].returns is None


def test_mutually_recursive_lists_terminate() -> None:
    assert denoted("def main(a, b):\n    x = [y]\n    y = [x]\n    mark(x[0][0][0][0])\n") is None
    assert denoted("class C:\n    def __init__(self):\n        self.x = self.x\n\nmark(C().x[0])\n") is None
