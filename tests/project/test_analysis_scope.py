"""`analysis` does not depend on when or how often results are computed, or on which code is targeted."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from support.imports import MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OURS: Final = {
    name: path for name, path in MODULES.items() if not name.startswith(("explore", "instrument", "safe"))
}
MEANING: Final = {name: path for name, path in MODULES.items() if name.startswith("analysis")}
SPEED: Final = re.compile(r"memo|cache|asks_few|mentions|targeted|exhaustive", re.IGNORECASE)
OF_JOBS: Final = {"CACHE", "cache_test_of", "cached", "is_cached", "is_for_a_cache"}
"""Names about the caches of the analyzed jobs, which are files."""
ENTRANCE: Final = {"analysis.queries.linked", "analysis.callgraph.function_flows"}
"""Modules that create a project and pass on how to analyze it."""
UNDER_WAY: Final = {
    # state for the interpretation of one function, discarded afterward
    "analysis.callgraph.function_flows": {"_interpreters"},
    "analysis.dataflow.interpreter": {"_annotations", "exits", "loop_exits", "raises"},
    "analysis.dataflow.transfer": {
        "call_sites",
        "contexts",
        "exception_contexts",
        "interrupted",
        "loops",
        "rank_tests",
        "yields",
    },
    # the sorted sync points of one function
    "analysis.synchronization.sync_points": {"_meetings"},
}
"""Collections that do not cache results for later calls."""
LINKED: Final = {
    ("analysis.values.module_members", "family"),
    ("analysis.queries.project", "targets"),
    ("analysis.queries.linked", "broken_locks"),
}
"""Attributes that are set on other objects: related classes, analyses, and a copy that is narrowed."""


def names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that code defines or uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.keyword(arg=str(name)):
                yield name


def found(of: Callable[[ast.AST], Iterator[str]], modules: dict[str, Path]) -> dict[str, list[str]]:
    every = {name: sorted(set(of(ast.parse(path.read_text("utf-8"))))) for name, path in modules.items()}
    return {name: some for name, some in every.items() if some}


def of_speed(tree: ast.AST) -> Iterator[str]:
    return (name for name in names(tree) if SPEED.search(name) and name not in OF_JOBS)


def identities(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="id")) | ast.Call(args=[ast.Name(id="id"), *_]):
                yield f"line {node.lineno}"


def collections(tree: ast.AST) -> Iterator[str]:
    """Yield attributes that are initially empty or that items are assigned to."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)], value=value)
                | ast.AnnAssign(target=ast.Attribute(attr=name), value=value)
            ) if is_empty(value):
                yield name
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr=name))]
            ):
                yield name


def is_empty(value: ast.expr | None) -> bool:
    match value:
        case ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "dict" | "list" | "defaultdict")):
            return True
        case _:
            return False


def callbacks(tree: ast.AST) -> Iterator[str]:
    """Yield the callables that a class is created with: constructor parameters and fields."""
    for class_ in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in class_.body:
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                arguments = (*node.args.args, *node.args.kwonlyargs)
                annotated = [(each.arg, each.annotation) for each in arguments]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                annotated = [(node.target.id, node.annotation)]
            else:
                continue
            yield from (
                f"{class_.name}.{name}"
                for name, hint in annotated
                if hint and "Callable" in ast.unparse(hint)
            )


def foreign(tree: ast.AST) -> Iterator[str]:
    """Yield attributes that are set on other objects."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        each = [item for target in targets for item in getattr(target, "elts", [target])]
        yield from (
            item.attr
            for item in each
            if isinstance(item, ast.Attribute) and ast.unparse(item.value) not in {"self", "cls"}
        )


def test_names_do_not_refer_to_speed() -> None:
    modules = {name: path for name, path in MEANING.items() if name not in ENTRANCE}
    assert found(of_speed, modules) == {}


def test_code_does_not_use_object_identities() -> None:
    assert found(identities, OURS) == {}


def test_objects_do_not_cache_results() -> None:
    held = {
        name: set(some) - UNDER_WAY.get(name, set()) for name, some in found(collections, MEANING).items()
    }
    assert {name: some for name, some in held.items() if some} == {}


def test_classes_take_no_callbacks() -> None:
    assert found(callbacks, MEANING) == {}


def test_code_does_not_set_attributes_of_other_objects() -> None:
    wrong = {(name, each) for name, some in found(foreign, MEANING).items() for each in some}
    assert wrong == LINKED


def test_violations_are_detected() -> None:
    """Each search finds its violation in bad code."""
    bad = ast.parse(
        "class A:\n"
        "    def __init__(self, find: Callable[[], int]) -> None:\n"
        "        self._known: dict[int, int] = {}\n"
        "        find.place, self.cache = 1, {}\n"
        "    def ask(self, key):\n"
        "        self._other[id(key)] = set(map(id, key))\n"
    )
    assert set(of_speed(bad)) == {"cache"}
    assert [*identities(bad)] == ["line 6", "line 6"]
    assert {*collections(bad)} == {"_known", "_other"}
    assert [*callbacks(bad)] == ["A.find"]
    assert [*foreign(bad)] == ["place"]
