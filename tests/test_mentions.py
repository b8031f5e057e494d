"""Who may call a function is sought among few: whoever only names what returns it is none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_guards import project

from fsrace_lint.project.names.tables import aliases_in

if TYPE_CHECKING:
    from fsrace_lint.project.names.mentions import Mentions
    from fsrace_lint.project.names.modules import LinkedFunction

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


def linked(files: dict[str, str]) -> tuple[Mentions, dict[str, LinkedFunction]]:
    """Link a project; give its mentions, and its functions by name."""
    linker = project(files).linker
    functions = (function for module in linker.table.modules for function in module.functions)
    return linker.mentions, {function.facts.qualname: function for function in functions}


def test_to_name_what_returns_a_function_is_not_to_call_it() -> None:
    mentions, by_name = linked({"main.py": SOURCE})
    found = {function.facts.qualname for function in mentions.of(by_name["meant"])}
    assert found == {"chosen", "by_result", "Kept.current", "reads"}


def test_to_read_a_property_is_to_call_it() -> None:
    _, by_name = linked({"main.py": SOURCE})
    returned = {
        name: [alias.returned for alias in aliases_in(by_name[name])] for name in ("chosen", "Kept.current")
    }
    assert returned == {"chosen": [True], "Kept.current": [True, False]}


def test_a_name_that_is_given_twice_is_gone_through_once() -> None:
    importing = "from main import meant as known\n\ndef calls():\n    known()\n"
    naming = "def meant():\n    pass\n\nknown = meant\n"
    mentions, by_name = linked({"main.py": naming, "other.py": importing})
    readers = len(mentions.of_name("meant")) + len(mentions.of_name("known"))
    assert by_name["calls"] in mentions.of(by_name["meant"])
    assert mentions.effort == readers + len({"meant", "known"})


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
def test_a_method_is_sought_by_what_its_classes_name_alone(code: str, expected: bool) -> None:
    mentions, by_name = linked({"main.py": CLASSES + code})
    assert (by_name["call"] in mentions.of(by_name["Sought.apply"])) is expected


def test_the_body_of_a_class_gives_its_methods_further_names() -> None:
    body = "    def apply(self):\n        pass\n    again = apply\n"
    code = f"class Sought:\n{body}\ndef call(kept):\n    kept.again()\n"
    mentions, by_name = linked({"main.py": code})
    assert by_name["call"] in mentions.of(by_name["Sought.apply"])
