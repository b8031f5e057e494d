"""Candidate callers of a function: few, but complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.linking import project

from fsrace_lint.program import alias_closure
from fsrace_lint.program.name_lookup import aliases_in

if TYPE_CHECKING:
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.program.relevance import Relevance

SOURCE = """\
def meant():
    pass

def chosen():
    return meant

def shows():
    print(chosen)

def by_result():
    found = chosen()
    found()

class Kept:
    @property
    def current(self):
        return meant

def reads(kept):
    kept.current()
"""


def linked(files: dict[str, str]) -> tuple[Relevance, dict[str, LinkedFunction]]:
    """Link a project; return its relevance filter and its functions by name."""
    flows = project(files).flows
    functions = (function for module in flows.table.modules for function in module.functions)
    return flows.relevance, {function.facts.qualname: function for function in functions}


def test_naming_a_factory_does_not_call_its_result() -> None:
    relevance, by_name = linked({"main.py": SOURCE})
    found = {function.facts.qualname for function in relevance.candidate_callers(by_name["meant"])}
    assert found == {"by_result", "reads"}


def test_reading_a_property_calls_it() -> None:
    _, by_name = linked({"main.py": SOURCE})
    returned = {
        name: [alias.returned for alias in aliases_in(by_name[name])] for name in ("chosen", "Kept.current")
    }
    assert returned == {"chosen": [True], "Kept.current": [True, False]}


def test_repeated_alias_is_followed_once() -> None:
    importing = "from main import meant as known\n\ndef calls():\n    known()\n"
    naming = "def meant():\n    pass\n\nknown = meant\n"
    relevance, by_name = linked({"main.py": naming, "other.py": importing})
    assert relevance.calling("known") == (by_name["calls"],)
    assert relevance.using({"meant"}) != []
    assert relevance.calling("meant") == ()
    assert by_name["calls"] in relevance.candidate_callers(by_name["meant"])
    importing = "from main import meant\n\ndef calls():\n    meant()\n"
    once, alone = linked({"main.py": "def meant():\n    pass\n", "other.py": importing})
    assert once.candidate_callers(alone["meant"]) != ()
    assert relevance.effort <= once.effort + len({"known"})


CLASSES = """\
class Sought:
    def apply(self):
        pass

class Heir(Sought):
    pass

class Other:
    def apply(self):
        pass

def call(kept):
    kept.known()

"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def keep(kept):\n    kept.known = Sought.apply\n", True),
        ("def keep(kept):\n    kept.known = Heir.apply\n", True),
        ("def keep(kept):\n    kept.known = kept.apply\n", True),
        ("def keep(kept):\n    kept.known = Other.apply\n", False),
        ("def keep(kept, Other):\n    kept.known = Other.apply\n", True),
        ("def keep(kept):\n    Other = kept\n    kept.known = Other.apply\n", True),
        ("def keep(kept):\n    def Other(): pass\n    kept.known = Other.apply\n", True),
        ("def keep(kept, Other):\n    def inside():\n        kept.known = Other.apply\n", True),
        ("def keep(kept):\n    kept.known = Other.apply\nOther = Sought\n", True),
        ("def f():\n    global Other\n    Other = 1\ndef keep(kept):\n    kept.known = Other.apply\n", True),
        ("def keep(kept):\n    kept.known = Other.apply\ndef Other():\n    return Sought\n", True),
        ("apply = 1\ndef keep(kept):\n    kept.known = apply\n", False),
        ("class Third(Sought):\n    def keep(self):\n        self.known = self.apply\n", True),
        ("class Third:\n    def keep(self):\n        self.known = self.apply\n", False),
    ],
)
def test_method_candidates_match_the_names_of_its_classes(code: str, expected: bool) -> None:
    relevance, by_name = linked({"main.py": CLASSES + code})
    assert (by_name["call"] in relevance.candidate_callers(by_name["Sought.apply"])) is expected


def test_class_body_can_alias_methods() -> None:
    body = "    def apply(self):\n        pass\n    again = apply\n"
    code = f"class Sought:\n{body}\ndef call(kept):\n    kept.again()\n"
    relevance, by_name = linked({"main.py": code})
    assert by_name["call"] in relevance.candidate_callers(by_name["Sought.apply"])


def targeted_candidates(files: dict[str, str], sought: str, *, handed: bool = False) -> list[str]:
    """Candidate callers in a targeted run, nearest first."""
    flows = project(files, targeted=True).flows
    functions = (function for module in flows.table.modules for function in module.functions)
    function = next(function for function in functions if function.qualified == sought)
    return [found.qualified for found, _ in flows.relevance.search(function, handed=handed)]


SCRIPT = "def main():\n    pass\n\nif __name__ == '__main__':\n    main()\n"


def test_script_calling_its_own_function_is_no_candidate_for_another() -> None:
    files = {"one.py": SCRIPT, "two.py": SCRIPT, "third.py": "import one\none.main()\n"}
    files["fourth.py"] = "from two import main\nmain()\n"
    assert {*targeted_candidates(files, "one.main")} == {"one.<module>", "third.<module>", "fourth.<module>"}
    assert {*targeted_candidates(files, "two.main")} == {"two.<module>", "third.<module>", "fourth.<module>"}


@pytest.mark.parametrize(
    ("code", "is_candidate"),
    [
        ("class Caller(Sought):\n    def go(self):\n        self.apply()\n", True),
        ("class Caller(Heir):\n    def go(self):\n        super().apply()\n", True),
        ("class Caller:\n    def go(self):\n        self.apply()\n", False),
        ("class Caller(Other):\n    def go(self):\n        super().apply()\n", False),
        ("class Caller:\n    def go(self):\n        self.kept.apply()\n", True),
        ("class Caller:\n    def go(self):\n        run(self.apply)\n", True),
        ("class Caller:\n    def go(self, other):\n        self = other\n        self.apply()\n", True),
        ("class Caller:\n    def go(self, given):\n        [self.apply() for self in given]\n", True),
        ("class Caller:\n    def go(self, given):\n        [self.apply() for one in given]\n", False),
        ("class Caller:\n    @staticmethod\n    def go(self):\n        self.apply()\n", True),
        ("class Caller:\n    def go(self):\n        def inside():\n            self.apply()\n", True),
        ("def apply():\n    pass\nclass Caller:\n    def go(self):\n        apply()\n", False),
        ("def go(first):\n    first.apply()\n", True),
    ],
)
def test_method_candidates_are_limited_to_related_classes(code: str, is_candidate: bool) -> None:
    files = {"main.py": CLASSES, "other.py": f"from main import Heir, Other, Sought\n{code}"}
    found = [name for name in targeted_candidates(files, "main.Sought.apply") if name.startswith("other.")]
    assert bool(found) is is_candidate


def test_subclass_with_the_name_of_its_base() -> None:
    base = "class Sought:\n    def __init__(self):\n        pass\n"
    files = {
        "base.py": base,
        "heir.py": "import base\nclass Sought(base.Sought):\n    pass\ndef makes():\n    Sought()\n",
        "other.py": "class Sought:\n    pass\ndef makes():\n    Sought()\n",
    }
    assert targeted_candidates(files, "base.Sought.__init__") == ["heir.makes"]


@pytest.mark.parametrize(
    ("most", "known"), [(2, {"", "copytree", "copies"}), (3, {"", "copytree", "copies", *"abc"})]
)
def test_alias_closure_stops_at_the_limit(
    monkeypatch: pytest.MonkeyPatch, most: int, known: set[str]
) -> None:
    monkeypatch.setattr(alias_closure, "MOST", most)
    relevance, _ = linked(
        {"main.py": "from shutil import copytree\n\ncopies = copytree\na = b = c = copies\n"}
    )
    assert relevance.library_names({"copytree"}) == known


def test_attribute_of_an_unknown_object_matches_every_class() -> None:
    code = """\
class One:
    def work(self):
        pass

class Two:
    def work(self):
        pass

    def keep(self):
        self.kept = self.work

def of_any(thing):
    taken = thing.work
    taken()

def of_one():
    mine = One.work
    mine()

def of_kept(thing):
    thing.kept()
"""
    relevance, by_name = linked({"main.py": code})
    found = {
        name: {each.facts.qualname for each in relevance.candidate_callers(by_name[f"{name}.work"])}
        for name in ("One", "Two")
    }
    assert found == {"One": {"of_any", "of_one"}, "Two": {"of_any", "of_kept"}}


def test_attribute_named_like_an_object() -> None:
    """The filter does not resolve `cls.cls`; the name alone admits its users."""
    code = """\
def work():
    pass

class Kept:
    def keep(self):
        self.cls = work

class Made:
    @classmethod
    def build(cls):
        made = cls
        made()
"""
    relevance, by_name = linked({"main.py": code})
    assert by_name["Made.build"] in relevance.candidate_callers(by_name["work"])


def test_nearest_candidates_come_first() -> None:
    calls = "from a.b.lib import sought\n\ndef calls():\n    sought()\n"
    files = {"a/b/lib.py": "def sought():\n    pass\n\ndef calls():\n    sought()\n"}
    files |= dict.fromkeys(("a/far.py", "a/b/near.py", "other.py"), calls)
    assert targeted_candidates(files, "a.b.lib.sought") == [
        "a.b.lib.calls",
        "a.b.near.calls",
        "a.far.calls",
        "other.calls",
    ]


def test_direct_calls_do_not_pass_the_function_on() -> None:
    code = "def sought():\n    pass\n\ndef calls():\n    sought()\n\ndef hands():\n    run(sought)\n"
    assert {*targeted_candidates({"lib.py": code}, "lib.sought")} == {"lib.calls", "lib.hands"}
    assert targeted_candidates({"lib.py": code}, "lib.sought", handed=True) == ["lib.hands"]


def test_property_setter_has_no_callers() -> None:
    code = """\
class Kept:
    @property
    def path(self):
        return self._path

    @path.setter
    def path(self, path):
        self._path = path

    @path.deleter
    def path(self):
        del self._path

def uses(kept: Kept):
    show(kept.path)

def names(path):
    show(path)
"""
    linked_project = project({"main.py": code})
    (module,) = linked_project.flows.table.modules
    found = [function for function in module.functions if function.facts.name == "path"]
    assert [linked_project.entry_states.callers(function) for function in found] == [(), (), ()]
