"""On-demand linking finds the same as an exhaustive run."""

from __future__ import annotations

import json
from textwrap import indent
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from identical import check
from support.linking import all_followed, all_results, callers_by_function, codes, project, results_in
from support.on_demand_cases import CALLS, IMPORTS, LIBRARY, MEANT, SILENT, WAYS
from support.sampling import bound

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.program.modules import LinkedFunction


def differing_runs(files: dict[str, str]) -> list[str]:
    """The kinds of run whose result differs from an exhaustive run."""
    unfiltered = project(files, exhaustive=True)
    paths = [module.relative for module in unfiltered.flows.table.modules]
    reference, edges = results_in(unfiltered, paths), callers_by_function(unfiltered)
    found = {
        "all files": all_results(files),
        "all files, few expected": all_results(files, targeted=True),
        "each file alone": [row for path in paths for row in results_in(project(files), [path])],
        "few files": [row for path in paths for row in results_in(project(files, targeted=True), [path])],
    }
    for after in (-1, 1):
        with all_followed(after):
            found[f"all followed after {after}"] = all_results(files)
    backwards = project(files)
    by_path = {path: results_in(backwards, [path]) for path in reversed(paths)}
    found["the last file first"] = [row for path in paths for row in by_path[path]]
    wrong = [how for how, rows in found.items() if rows != reference]
    for how, targeted in (("the callers of functions", False), ("the same, few expected", True)):
        if callers_by_function(project(files, targeted=targeted)) != edges:
            wrong.append(how)
    return wrong


OWN: Final = ("make", "is_main", "leave", "sync", "once", "only", "wait", "flag", "Store", "Child")
NAMES: Final = ("one", "two", "six")
KNOWN: Final = (
    *("make", "is_main", "leave", "sync", "once", "only", "wait", "Store", "Child", "Store.build"),
    *("os.makedirs", "os.path.exists", "dist.barrier", "sys.exit", "FileLock", "torch.save"),
)


@st.composite
def callables(draw: st.DrawFn, known: tuple[str, ...]) -> str:
    """An expression for a callable."""
    name = st.sampled_from(known)
    form = draw(
        st.sampled_from(
            (
                *("{0}", "{0}", "{0}", "{0}()", "{0}('x').put", "({0} if flag else {1})", "({0} or {1})"),
                *("(lambda *a: {0}(*a))", "(lambda: {0})", "(walrus := {0})", "functools.partial({0}, 'x')"),
                *("{0}.put", "{0}.attribute", "{0}.own", "[{0}][0]", "{0}[int]"),
            )
        )
    )
    return form.format(draw(name), draw(name))


BINDINGS: Final = (
    "{n} = {e}",
    "{n}: object = {e}",
    "{n}, other = {e}, {f}",
    "[{n}, *rest] = [{e}, {f}]",
    "def {n}(*args):\n    return {e}",
    "def {n}(out='x'):\n    local = {e}\n    local(out)",
    "def {n}(out={e}):\n    out('x')",
    "def {n}(out='x'):\n    def inner():\n        return {e}\n    return inner",
    "def {n}(out='x'):\n    kept = {e}\n    def inner(*args):\n        kept(*args)\n    inner(out)",
    "def {n}(function):\n    if dist.get_rank() == 0:\n        {e}(function)\n    return function",
    "@{e}\ndef {n}(out='x'):\n    {f}(out)",
    "{n} = None\ndef set_{n}():\n    global {n}\n    {n} = {e}\nset_{n}()",
    (
        "class {n}:\n    attribute = {e}\n    def __init__(self, *args):\n        self.own = {f}\n"
        "    def put(self, out):\n        self.own(out)\n        self.attribute(out)"
    ),
    (
        "class {n}:\n    @property\n    def attribute(self):\n        return {e}\n    def put(self, out):\n"
        "        self.attribute(out)\n    own = put"
    ),
    (
        "class {n}(Store):\n    def put(self, out):\n        {e}(out)\n        super().put(out)\n"
        "    @classmethod\n    def build(cls, out):\n        alias = cls\n        return alias(out)"
    ),
    (
        "class {n}(Child):\n    def again(self, out):\n"
        "        parent = super().again\n        parent(out)\n        {e}()"
    ),
)
USES: Final = (
    "{e}('x')",
    "{e}()",
    "{e}({f})",
    "{e}({f}('x'))",
    "{e}(function={f})",
    "{e}(lambda: {f}('x'))",
    "if {e}():\n    {f}('y')",
    "with {e} as entered:\n    entered('y')",
    "with {e}('lock'):\n    {f}('y')",
    "def caller(held: {k}):\n    held.put('z')\n    method = held.again\n    method('z')\n    held.own('z')",
)
PLACES: Final = (
    "{}",
    "if dist.get_rank() == 0:\n{}",
    "def function_{}():\n{}",
    "def function_{}(flag=dist.get_rank() == 0):\n    if flag:\n{}",
)


@st.composite
def statements(draw: st.DrawFn, known: tuple[str, ...], count: int) -> str:
    """Definitions and calls, some of them under a rank check."""
    text = ""
    for number in range(count):
        binds = draw(st.booleans())
        form = draw(st.sampled_from(BINDINGS if binds else USES))
        name = draw(st.sampled_from(NAMES))
        kind = draw(st.sampled_from(("Store", "Child", *NAMES)))
        code = form.format(n=name, e=draw(callables(known)), f=draw(callables(known)), k=f"'{kind}'")
        place = "{}" if binds else draw(st.sampled_from(PLACES))
        if place != "{}":
            code = indent(code, "        " if place.endswith("flag:\n{}") else "    ")
            code = place.format(code) if place.count("{}") == 1 else place.format(number, code)
        text += code + "\n"
        known = (*known, name) if binds else known
    return text


@st.composite
def projects(draw: st.DrawFn) -> dict[str, str]:
    """A library and two files that use it, the second one also through the first."""
    library = draw(st.sampled_from(("from lib import *\n", f"from lib import {', '.join(OWN)}\n")))
    first = library + draw(
        st.sampled_from(("", "from lib import make as one\n", "import lib\ntwo = lib.make\n"))
    )
    second = draw(
        st.sampled_from(
            (
                "from first import *\n",
                f"{library}import first\nfrom first import one, two as six\n",
                f"{library}from first import six as one\nimport first as f\ntwo = f.two\n",
            )
        )
    )
    first += draw(statements(KNOWN, draw(st.integers(1, 4))))
    second += draw(statements((*KNOWN, *NAMES), draw(st.integers(1, 4))))
    return {"lib.py": LIBRARY, "first.py": IMPORTS + first, "second.py": IMPORTS + second}


@settings(max_examples=bound(12, 100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(projects())
def test_filters_do_not_change_the_findings(files: dict[str, str]) -> None:
    assert differing_runs(files) == []


def library_and_user(code: str) -> dict[str, str]:
    """A project with the library and one file that uses it."""
    return {"lib.py": LIBRARY, "use.py": f"{IMPORTS}import lib\nfrom lib import {', '.join(OWN)}\n{code}\n"}


def test_entry_state_of_a_call_cycle_does_not_depend_on_query_order() -> None:
    made = "    if not os.path.exists(out):\n        os.makedirs(out)\n"
    called = f"{IMPORTS}\ndef work(out):\n{made}"
    cycles = (
        f"{IMPORTS}from called import work\n\ndef here(out):\n{made}"
        "    if dist.get_rank() == 0:\n        work(out + '/first')\n    there(out)\n"
        "\ndef there(out):\n    here(out + '/next')\n"
    )
    files = {"called.py": called, "circle.py": cycles}
    assert differing_runs(files) == []
    assert ("FSR101", "here") in codes(files, "circle.py")
    assert codes(files, "called.py") == set()


@pytest.mark.parametrize("case", WAYS)
def test_callers_through_aliases_are_found(case: str) -> None:
    function, code = WAYS[case]
    files = library_and_user(code)
    edges = callers_by_function(project(files))[f"lib.{function}"]
    assert [edge for edge in edges if edge.startswith("use.")], edges
    assert differing_runs(files) == []


CHAINS: Final = {
    "names": ("def caller():\n    n0 = make\n", "    n{0} = n{1}\n", "    n{0}('x')\n"),
    "module variables": ("n0 = make\n", "n{0} = n{1}\n", "n{0}('x')\n"),
    "results": (
        "def n0():\n    return make\n",
        "def n{0}():\n    return n{1}()\n",
        "found = n{0}()\nfound('x')\n",
    ),
    "returned variables": (
        "def n0():\n    return make\n",
        "def n{0}():\n    found = n{1}\n    given = found()\n    return given\n",
        "found = n{0}()\nfound('x')\n",
    ),
    "attributes": (
        "class Keeper:\n    def __init__(self):\n        self.n0 = make\n",
        "        self.n{0} = self.n{1}\n",
        "    def use(self):\n        self.n{0}('x')\n",
    ),
}


@pytest.mark.parametrize("kind", CHAINS)
def test_alias_chains_are_searched_as_deep_as_they_are_resolved(kind: str) -> None:
    first, link, use = CHAINS[kind]
    found = []
    for length in range(1, 11):
        links = "".join(link.format(number, number - 1) for number in range(1, length + 1))
        files = library_and_user(f"{first}{links}{use.format(length)}")
        expected = callers_by_function(project(files, exhaustive=True))["lib.make"]
        assert callers_by_function(project(files))["lib.make"] == expected
        found.append(any(edge.startswith("use.") for edge in expected))
    assert found[0]
    assert not found[-1]


@pytest.mark.parametrize("case", MEANT)
def test_aliased_calls_are_reported(case: str) -> None:
    expected, code = MEANT[case]
    files = library_and_user(code)
    assert expected in {code for code, _ in codes(files, "use.py")}
    assert differing_runs(files) == []


@pytest.mark.parametrize("case", SILENT)
def test_aliased_rank_checks_are_recognized(case: str) -> None:
    files = library_and_user(SILENT[case])
    assert ("FSR101", "make") not in codes(files, "lib.py")
    assert differing_runs(files) == []


def test_library_is_reported_if_every_rank_calls_it() -> None:
    assert ("FSR101", "make") in codes(library_and_user("make('x')"), "lib.py")


def test_one_and_two_jobs_find_the_same(tmp_path: Path) -> None:
    files = {f"use_{number}.py": f"{IMPORTS}{CALLS}" for number in range(3)} | {"lib.py": LIBRARY}
    for path, text in {**files, "pyproject.toml": '[tool.fsrace-lint]\nprofile = "strict"\n'}.items():
        (tmp_path / path).write_text(text, "utf-8")
    expected = {(path, *found) for path in files for found in codes(files, path, exhaustive=True)}
    assert {path for path, *_ in expected} == set(files)
    for jobs in (1, 2):
        report = json.loads(check(tmp_path, f"--jobs={jobs}", "--no-cache").report.split(b"\n\n")[0])
        found = {(row["path"], row["code"], row["function"]) for row in report["findings"]}
        assert found == expected


FUNCTIONS: Final = """\
def meant():
    pass

def calls():
    meant()

def names():
    other = meant
    return other

def by_result():
    found = names()
    found()

def shadows(meant):
    meant()

def in_branch(flag):
    if flag:
        return meant
    return None

def by_branch():
    found = in_branch(1)
    found()

def encloses():
    def inside():
        pass
    def beside():
        inside()

def shadows_inside(inside):
    inside()

def unrelated():
    names_nothing = 1
    return names_nothing

class Base:
    def __init__(self):
        self.kept = meant

    def uses(self):
        self.kept()

class Heir(Base):
    def built(self):
        Heir()

class Stranger:
    def uses(self):
        self.other()
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("meant", {"calls", "by_result", "shadows", "Base.uses"}),
        ("encloses.inside", {"encloses.beside"}),
        ("unrelated", set()),
        ("Base.__init__", {"Heir.built"}),
        ("names", {"by_result"}),
    ],
)
def test_candidate_callers_are_a_small_superset(name: str, expected: set[str]) -> None:
    flows = project({"main.py": FUNCTIONS}).flows
    by_name = {function.facts.qualname: function for function in flows.table.modules[0].functions}
    found = flows.relevance.candidate_callers(by_name[name])
    assert {function.facts.qualname for function in found} == expected
    assert list(found) == sorted(found, key=lambda function: function.order)
    named, names = flows.relevance.naming(by_name[name])
    nameless = set(flows.relevance.naming_nobody(by_name[name]))
    assert set(found) == {*named, *nameless}
    sought = list(flows.relevance.search(by_name[name]))
    assert {function for function, _ in sought} == set(named)
    assert names.issuperset(used for _, used in sought)


METHODS = """
class One:
    def save(self):
        pass

class Other:
    def save(self):
        pass

class Heir(One):
    def save(self):
        pass

def first(one: One):
    one.save()

def second():
    other = Other()
    other.save()

def reads_neither(item):
    item.save
"""


def test_methods_of_one_name_share_candidates_but_not_callers() -> None:
    linked = project({"main.py": METHODS})
    by_name = {function.facts.qualname: function for function in linked.flows.table.modules[0].functions}
    one, other, heir = (by_name[f"{name}.save"] for name in ("One", "Other", "Heir"))
    assert linked.flows.relevance.candidate_callers(one) is linked.flows.relevance.candidate_callers(other)
    callers = {
        method: [edge.call_site.function.facts.qualname for edge in linked.entry_states.callers(method)]
        for method in (heir, other, one)
    }
    assert callers == {one: ["first"], other: ["second"], heir: ["first"]}


def test_no_search_after_all_functions_were_followed() -> None:
    linked = project({"main.py": METHODS})
    by_name = {function.facts.qualname: function for function in linked.flows.table.modules[0].functions}
    one, other, heir = (by_name[f"{name}.save"] for name in ("One", "Other", "Heir"))
    with all_followed(after=0):
        found = {one: linked.entry_states.callers(one)}
        sought = linked.flows.relevance.effort
        found |= {
            other: linked.entry_states.callers(other),
            heir: tuple(linked.entry_states.rank_tests.callers.search(heir)),
        }
    callers = {method: [edge.call_site.function for edge in edges] for method, edges in found.items()}
    assert callers == {one: [by_name["first"]], other: [by_name["second"]], heir: [by_name["first"]]}
    assert sought
    assert linked.flows.relevance.effort == sought


def test_interrupted_caller_is_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = project({"main.py": METHODS})
    by_name = {function.facts.qualname: function for function in linked.flows.table.modules[0].functions}
    events = linked.flows.call_sites
    given_up: list[object] = []

    def ended(function: LinkedFunction) -> tuple[CallSite, ...]:
        if function is by_name["first"] and not given_up:
            given_up.append(linked.entry_states.callers(by_name["Other.save"]))
            raise KeyboardInterrupt
        return events(function)

    monkeypatch.setattr(linked.flows, "call_sites", ended)
    with pytest.raises(KeyboardInterrupt):
        linked.entry_states.callers(by_name["One.save"])
    callers = [edge.call_site.function for edge in linked.entry_states.callers(by_name["One.save"])]
    assert callers == [by_name["first"]]
