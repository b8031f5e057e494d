"""Who may call a function is sought among few: whoever only names what returns it is none of them."""

from __future__ import annotations

from test_guards import project

from fsrace_lint.project.names.tables import aliases_in

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


def test_to_name_what_returns_a_function_is_not_to_call_it() -> None:
    linker = project({"main.py": SOURCE}).linker
    by_name = {function.facts.qualname: function for function in linker.table.modules[0].functions}
    found = {function.facts.qualname for function in linker.mentions.of(by_name["meant"])}
    assert found == {"chosen", "by_result", "Kept.current", "reads"}


def test_to_read_a_property_is_to_call_it() -> None:
    linker = project({"main.py": SOURCE}).linker
    by_name = {function.facts.qualname: function for function in linker.table.modules[0].functions}
    returned = {
        name: [alias.returned for alias in aliases_in(by_name[name])] for name in ("chosen", "Kept.current")
    }
    assert returned == {"chosen": [True], "Kept.current": [True, False]}


def test_a_name_that_is_given_twice_is_gone_through_once() -> None:
    importing = "from main import meant as known\n\ndef calls():\n    known()\n"
    naming = "def meant():\n    pass\n\nknown = meant\n"
    linker = project({"main.py": naming, "other.py": importing}).linker
    by_name = {
        function.facts.qualname: function for module in linker.table.modules for function in module.functions
    }
    readers = len(linker.mentions.of_name("meant")) + len(linker.mentions.of_name("known"))
    assert by_name["calls"] in linker.mentions.of(by_name["meant"])
    assert linker.mentions.effort == readers + len({"meant", "known"})
