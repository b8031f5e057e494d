"""Reuse in the daemon: kept results equal those of a fresh analysis, and little is analyzed again.

Shows: `program/changes.py`, `engine/dependencies.py`
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support.sampling import bound
from support.settled import settle, write
from support.warm import check, keeping

from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
from fsrace_lint.analysis.dataflow.process_set import TOP
from fsrace_lint.analysis.values.resolve import Resolver
from fsrace_lint.engine.parallel.progress import CancelledError
from fsrace_lint.engine.query import query
from fsrace_lint.files.source import of_text
from fsrace_lint.pipeline import warm as kept_module
from fsrace_lint.program.modules import Module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.dataflow.abstract_state import AbstractState, FlowResult
    from fsrace_lint.pipeline.run import Run
    from fsrace_lint.pipeline.warm import WarmProjects
    from fsrace_lint.program.modules import LinkedFunction

pytestmark = pytest.mark.usefixtures("thawed")

DENOTED: Final = Resolver.denoted

PROJECT: Final = {
    "lead.py": "import torch.distributed as dist\ndef lead():\n    return dist.get_rank() == 0\n",
    "again.py": "from lead import lead\n",
    "named.py": "from again import lead\ndef f():\n    if lead():\n        work()\n",
    "leave.py": "import sys\ndef leave():\n    sys.exit(1)\n",
    "left.py": "import leave\nfrom misc import gone\ndef f():\n    leave.leave()\n    work()\n"
    "def g():\n    gone()\n    work()\n",
    "base.py": "import torch.distributed as dist\nclass Base:\n    def __init__(self):\n"
    "        self.main = dist.get_rank() == 0\n    def leads(self):\n        return self.main\n"
    "    def plain(self):\n        return 1\n    def f(self):\n        if self.main:\n            work()\n"
    "    def g(self):\n        if self.other:\n            work()\n"
    "    def d(self):\n        if self.debug:\n            work()\n"
    "    def each(self):\n        yield self.main\n        return self.main\n",
    "heir.py": "from base import Base\nclass Heir(Base):\n    def h(self):\n        self.x = 1\n"
    "        self.debug = False\n"
    "    def k(self):\n        if self.leads():\n            work()\n",
    "made.py": "from heir import Heir\ndef f():\n    if Heir().leads():\n        work()\n",
    "parted.py": "def f(a_leader):\n    if a_leader.first:\n        work()\n",
    "turns.py": "from lead import lead\ndef even(n):\n    return lead() if n else odd(n)\n"
    "def odd(n):\n    return even(n)\ndef f(n):\n    if odd(n):\n        work()\n"
    "class Turns:\n    def one(self):\n        if self.two() and self.is_set():\n            return lead()\n"
    "        return self.is_set()\n"
    "    def two(self):\n        if self.one() or self.is_set():\n            return self.is_set()\n"
    "        return self.one()\n    def is_set(self):\n        return self.two()\n",
    "misc.py": "import fcntl\nclass Other:\n    pass\ndef f(x):\n    x.go()\n    work()\n",
    "far.py": "def f():\n    work()\n",
    "mid.py": "from lead import lead\ndef told():\n    if lead():\n        return True\n    return False\n"
    "def given():\n    return lead()\n",
    "one.py": "from mid import told, given\ndef f():\n    if told():\n        work()\n"
    "def g():\n    if given():\n        work()\n",
    "two.py": "from mid import told, given\ndef f():\n    if told():\n        work()\n"
    "def g():\n    if given():\n        work()\n",
    "many.py": "from lead import lead\ndef many():\n    yield lead()\n    return lead()\n",
    "from_many.py": "from many import many\n",
    "all.py": "from from_many import many\ndef f():\n    if many():\n        work()\n"
    "def g():\n    if many():\n        work()\n",
    "pkg/__init__.py": "from . import inner\n",
    "pkg/inner.py": "from ..lead import lead\n",
    "above.py": "import threading\nfrom base import Base\nfrom pkg import inner\n"
    "class Own(Base, threading.Thread):\n    def leads(self):\n        if super().leads():\n"
    "            return True\n        return inner.lead()\n"
    "def f():\n    if Own().is_alive() or Own().leads():\n        work()\n",
    "way.py": "from base import Base\nfrom base import Base as Named\n",
    "own.py": "from far import Given\nclass Late(Given):\n    other = True\n",
    "second.py": "from way import Base\nclass Second(Base):\n    pass\n",
    "of_second.py": "from second import Second\ndef f():\n    if Second().leads():\n        work()\n"
    "def g():\n    if Second().each():\n        work()\n",
    "parts/sub/inner_lead.py": "from lead import lead\n",
    "by_name.py": "from sub.inner_lead import lead\ndef f():\n    if lead():\n        work()\n",
    "giving.py": "import give\ndef f(x):\n    give.taken()()\n    work()\n",
    "taking.py": "def f(x):\n    f(x.go)\n    x.taken()\n",
    "with_taken.py": "def f(x):\n    f(x.taken)\n    x.y()()\ndef g(x):\n    x.taken()\n",
    "give.py": "from leave import leave\n",
}
"""Rank checks, exits, and classes, each used from another file in a different way."""
HEIR_SETS: Final = PROJECT["heir.py"].replace("self.x = 1", "self.other = not self.main")
STATES: Final[dict[str, tuple[str | None, ...]]] = {
    "lead.py": (
        PROJECT["lead.py"].replace("== 0", "!= 0"),
        PROJECT["lead.py"] + "# the end\n",
        "lead = print\n",
        "def lead(:\n",
        None,
    ),
    "again.py": ("from leave import leave as lead\n", "from base import Base as lead\n", ""),
    "leave.py": ("def leave():\n    pass\n", "from lead import lead as leave\n"),
    "base.py": (
        PROJECT["base.py"].replace("== 0", "== 1"),
        PROJECT["base.py"].replace("return self.main", "return True"),
        PROJECT["base.py"].replace("return 1", "return 2"),
        "class Base: pass\n",
    ),
    "heir.py": (
        HEIR_SETS,
        PROJECT["heir.py"].replace("self.x = 1", "self.x = 2"),
        PROJECT["heir.py"].replace("(Base)", ""),
        PROJECT["heir.py"].replace("def h", "def leads"),
        PROJECT["heir.py"].replace("import Base", "import Base as B").replace("(Base)", "(B)"),
    ),
    "misc.py": (
        PROJECT["misc.py"].replace("    pass", "    other = 1").replace("Other:", "Other(Base):")
        + "from base import Base\n",
        PROJECT["misc.py"] + "class ALeader:\n    first = __import__('rank').get_rank() == 0\n",
        PROJECT["misc.py"] + "import sys\ngo = sys.exit\n",
        PROJECT["misc.py"] + "import sys\ndef gone():\n    sys.exit(1)\n",
        PROJECT["misc.py"] + "from base import Base as Own\nclass Late(Own):\n    other = True\n",
        PROJECT["misc.py"] + "Base = 1\n",
    ),
    "turns.py": (PROJECT["turns.py"].replace("if n else odd(n)", ""),),
    "give.py": (
        "from leave import leave\ndef taken():\n    return leave\n",
        "def taken():\n    return 1\n",
        "import sys\ndef taken():\n    sys.exit(1)\n",
    ),
    "new.py": (
        "def f():\n    work()\n",
        "from base import Base\nclass Late(Base):\n    other = True\n",
        "from base import Base as Own\n",
        "from new import Own\nclass Later(Own):\n    other = True\n",
        "import sys\ndef go():\n    sys.exit(1)\n",
        "def go():\n    pass\n",
        "class ALeader:\n    first = __import__('rank').get_rank() == 0\n",
        None,
    ),
    "a_new.py": ("from new import Own\nclass Late(Own):\n    other = True\n", None),
    "parts/sub/__init__.py": ("", None),
    "torch/distributed.py": ("def get_rank():\n    return 0\n", None),
}
"""Later contents of these files; None is a missing file."""


def at(state: AbstractState) -> Any:
    tests = [(repr(each.test), each.truth, each.exit) for each in state.conditions]
    return state.processes, tests, state.locks, len(state.implied_conditions)


def shape(flow: FlowResult) -> Any:
    """Return the result of an analysis without objects that belong to one project."""
    return (
        [
            (each.call.span, at(each.state), len(each.exception_contexts), len(each.contexts))
            for each in flow.call_sites
        ],
        [(repr(way.value), at(way.state), way.position) for way in (*flow.exits, *flow.exceptional_exits)],
        [test.span for test in flow.rank_tests],
        flow.fails_if_parallel,
    )


def qualified_name(function: LinkedFunction) -> str:
    return f"{function.module.name}.{function.facts.name}"


def reanalyzed(run: Run) -> dict[str, Any]:
    """Link the files of a run again, and analyze all functions."""
    files = [run.files[relative] for relative in sorted(run.files)]
    modules = [Module(file.path, file.relative, file.known_facts, file.head) for file in files if file.parsed]
    flows = FunctionFlows(modules, run.link()[1].flows.catalog, {})
    functions = [function for module in flows.table.modules for function in module.functions]
    found = [(qualified_name(function), flows.flow(function)) for function in functions]
    return {name: shape(flow) for name, flow in found if flow is not None}


def known(run: Run) -> dict[str, Any]:
    """Return the results that a run has kept, without analyzing anything."""
    assert run.reuse is not None
    flows = run.link()[1].flows.known_flows.independent_of(0)[0]
    return {qualified_name(function): shape(flow) for (function,), flow in flows.items() if flow is not None}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project directory, which is also the current directory."""
    settle(monkeypatch)
    monkeypatch.chdir(tmp_path)
    write({"pyproject.toml": "", **PROJECT})
    return tmp_path


def never_cancel() -> None:
    """Let the work continue."""


@pytest.fixture
def analyzed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that are analyzed, in advance or by a check."""
    seen: list[str] = []
    interpret = FunctionFlows.interpret

    def noting(self: FunctionFlows, function: LinkedFunction) -> FlowResult:
        seen.append(qualified_name(function))
        return interpret(self, function)

    monkeypatch.setattr(FunctionFlows, "interpret", noting)
    return seen


def prepared() -> WarmProjects:
    warm = keeping("far.py")
    warm.prepare(never_cancel)
    return warm


def put(name: str, text: str | None) -> None:
    path = Path(name)
    if text is None:
        path.unlink(missing_ok=True)
    else:
        write({name: text})


GUARD: Final = {"lead.lead", "named.f", "turns.f", "one.f", "one.g", "two.f", "two.g"}
CHANGES: Final[dict[str, tuple[str, str, set[str], set[str]]]] = {
    "rank check": ("lead.py", STATES["lead.py"][0] or "", GUARD, {"made.f", "far.f", "base.f", "left.f"}),
    "import of a rank check": (
        "again.py",
        "from leave import leave as lead\n",
        {"named.f"},
        {"turns.f", "far.f"},
    ),
    "function that exits": ("leave.py", "def leave():\n    pass\n", {"left.f"}, {"named.f", "far.f"}),
    "inherited method": (
        "base.py",
        PROJECT["base.py"].replace("return self.main", "return True"),
        {"made.f", "heir.k"},
        {"named.f", "far.f"},
    ),
    "subclass method that sets no used attribute": (
        "heir.py",
        PROJECT["heir.py"].replace("self.x = 1", "self.x = 2"),
        {"heir.h", "made.f"},
        {"base.f"},
    ),
    "attribute set in a subclass": ("heir.py", HEIR_SETS, {"heir.h", "base.g"}, {"named.f", "far.f"}),
    "constant set in a subclass": (
        "heir.py",
        PROJECT["heir.py"].replace("False", "True"),
        {"heir.h", "base.d"},
        {"base.f", "named.f"},
    ),
    "overridden method called through super": (
        "base.py",
        PROJECT["base.py"].replace("return self.main", "return True"),
        {"above.leads", "above.f"},
        {"named.f"},
    ),
    "rank check imported through a package": (
        "lead.py",
        STATES["lead.py"][0] or "",
        GUARD | {"above.f"},
        {"far.f"},
    ),
    "import path of a base class": (
        "way.py",
        "from misc import Other as Base\n",
        {"of_second.f"},
        {"named.f"},
    ),
    "generator function": (
        "many.py",
        PROJECT["many.py"].replace("    yield lead()\n", ""),
        {"all.f", "all.g"},
        {"one.f", "named.f"},
    ),
    "generator method": (
        "base.py",
        PROJECT["base.py"].replace("        yield self.main\n", ""),
        {"of_second.g"},
        {"named.f"},
    ),
    "alias of a base class": (
        "far.py",
        PROJECT["far.py"] + "from base import Base as Given\n",
        {"base.g"},
        {"named.f"},
    ),
    "new subclass": (
        "misc.py",
        PROJECT["misc.py"] + "from base import Base\nclass Late(Base):\n    other = True\n",
        {"base.g"},
        set(),
    ),
    "class named like a variable": (
        "misc.py",
        PROJECT["misc.py"] + "import rank\nclass ALeader:\n    first = rank.get_rank() == 0\n",
        {"parted.f"},
        set(),
    ),
    "alias of an exit function": (
        "far.py",
        PROJECT["far.py"] + "import sys\ngo = sys.exit\n",
        {"misc.f"},
        {"named.f", "left.f"},
    ),
    "new function with a known name": (
        "misc.py",
        PROJECT["misc.py"] + "import sys\ndef gone():\n    sys.exit(1)\n",
        {"left.g"},
        {"named.f"},
    ),
    "recursive function": (
        "turns.py",
        PROJECT["turns.py"].replace("n else odd(n)", "n else False"),
        {"turns.even", "turns.odd", "turns.f"},
        {"lead.lead", "named.f"},
    ),
    "code that no other file uses": (
        "far.py",
        "def f():\n    rest()\n",
        {"far.f"},
        {"lead.lead", "left.f", "base.f", "base.g", "made.f", "parted.f", "misc.f"},
    ),
}
"""A file, its new text, functions that are analyzed again, and functions that are not."""


@pytest.mark.parametrize(("name", "text", "affected", "others"), CHANGES.values(), ids=CHANGES)
def test_change_reanalyzes_only_affected_functions(
    here: Path, analyzed: list[str], *, name: str, text: str, affected: set[str], others: set[str]
) -> None:
    warm = prepared()
    assert {*analyzed} >= affected | others
    analyzed.clear()

    write({name: text})
    run, _ = check("far.py", warm=warm)
    held = known(run)
    expected = reanalyzed(run)
    analyzed.clear()
    assert held.items() <= expected.items()
    assert others <= held.keys()
    own = {"far.<module>", "far.f"}  # the check has analyzed them
    assert not affected & held.keys() - own

    warm.prepare(never_cancel)
    assert affected - own <= {*analyzed} <= expected.keys() - others
    assert known(run) == expected


def test_no_function_is_analyzed_twice(here: Path, analyzed: list[str]) -> None:
    warm = keeping("far.py")
    analyzed.clear()
    warm.prepare(never_cancel)
    once = [each for each in analyzed if not each.startswith("turns.")]  # except recursive functions
    assert len(once) == len({*once}) > len(PROJECT)
    analyzed.clear()
    for name in ("named.py", "made.py", "base.py"):
        check(name, warm=warm)
        warm.prepare(never_cancel)
    assert analyzed == []


def test_interrupted_preparation_resumes(here: Path, analyzed: list[str]) -> None:
    warm = keeping("far.py")
    analyzed.clear()
    left = [5]

    def cancel_later() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise CancelledError

    run, _ = check("far.py", warm=warm)
    assert run.reuse is not None
    counts = []
    while not run.reuse.is_done:
        left[0] = 5
        warm.prepare(cancel_later)
        counts.append(len(known(run)))
    assert counts == sorted(counts)
    assert counts[0] < counts[3]
    assert known(run) == reanalyzed(run)


def test_results_from_before_an_interruption_are_used(here: Path, analyzed: list[str]) -> None:
    warm = keeping("far.py")
    left = [len(PROJECT)]

    def cancel_later() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise CancelledError

    warm.prepare(cancel_later)
    write({"far.py": "def f():\n    rest()\n"})
    run, _ = check("far.py", warm=warm)
    assert {"base.leads", "base.f"} < known(run).keys() < reanalyzed(run).keys()
    assert known(run).items() <= reanalyzed(run).items()


def test_temporarily_broken_file(here: Path, analyzed: list[str]) -> None:
    warm = prepared()
    write({"named.py": "def f(:\n"})
    analyzed.clear()
    run, _ = check("far.py", warm=warm)
    assert {"lead.lead", "base.f", "made.f"} <= known(run).keys()
    assert known(run) == reanalyzed(run)
    warm.prepare(never_cancel)
    assert not [each for each in analyzed if each.startswith("named.")]

    write({"named.py": PROJECT["named.py"] + "more = 1\n"})
    run, _ = check("far.py", warm=warm)
    assert {"lead.lead", "base.f", "made.f"} <= known(run).keys()
    analyzed.clear()
    warm.prepare(never_cancel)
    assert {*analyzed} == {"named.<module>", "named.f"}
    assert known(run) == reanalyzed(run)


ADDITIONS: Final[dict[str, tuple[str, str, set[str], set[str]]]] = {
    "file that nothing imports": ("new.py", "def f():\n    work()\n", set(), {"named.f", "base.f", "far.f"}),
    "file that shadows a library": ("torch/distributed.py", "", {"named.f"}, set()),
    "__init__.py for existing modules": ("parts/sub/__init__.py", "", {"by_name.f"}, set()),
    "subclass": (
        "new.py",
        "from base import Base\nclass Late(Base):\n    other = True\n",
        {"base.g"},
        {"named.f", "far.f", "turns.f"},
    ),
    "subclass of an import alias": (
        "new.py",
        "from base import Base as Own\nclass Late(Own):\n    other = True\n",
        {"base.g"},
        {"named.f", "far.f", "turns.f"},
    ),
    "subclass of an alias from another file": (
        "new.py",
        "from way import Named\nclass Late(Named):\n    other = True\n",
        {"base.g"},
        {"named.f", "far.f", "turns.f"},
    ),
    "class named like a variable": ("new.py", "class ALeader:\n    first = 1\n", {"parted.f"}, set()),
    "function with the name of a method that exits": (
        "new.py",
        "import sys\ndef go():\n    sys.exit(1)\n",
        {"misc.f"},
        {"named.f", "giving.f", "taking.f", "far.f"},
    ),
    "function with the name of a method that returns": (
        "new.py",
        "def go():\n    pass\n",
        {"misc.f"},
        {"far.f", "named.f"},
    ),
    "function that returns a callable": (
        "new.py",
        "from leave import leave\ndef taken():\n    return leave\n",
        {"giving.f", "taking.f"},
        {"misc.f", "named.f", "far.f"},
    ),
}
"""A new file, its text, functions that are analyzed again, and functions that are not."""


@pytest.mark.parametrize(("name", "text", "affected", "others"), ADDITIONS.values(), ids=ADDITIONS)
def test_added_or_removed_file_reanalyzes_only_affected_functions(
    here: Path, analyzed: list[str], *, name: str, text: str, affected: set[str], others: set[str]
) -> None:
    warm = prepared()
    for state in (text, None, text):
        put(name, state)
        run, _ = check("far.py", warm=warm)
        held = known(run)
        assert held.items() <= reanalyzed(run).items()
        assert others <= held.keys()
        analyzed.clear()
        warm.prepare(never_cancel)
        if state is not None:
            assert not affected & held.keys()
            assert affected <= {*analyzed}
        assert not others & {*analyzed}
        assert known(run) == reanalyzed(run)


def test_files_added_and_removed_at_once(here: Path, analyzed: list[str]) -> None:
    warm = prepared()
    put("again.py", None)
    write({"aa.py": "", "b.py": "", "z.py": ""})
    run, _ = check("far.py", warm=warm)
    assert {"lead.lead", "base.f", "made.f", "turns.f"} <= known(run).keys()
    warm.prepare(never_cancel)
    assert known(run) == reanalyzed(run)
    write({"lead.py": STATES["lead.py"][0] or "", "heir.py": HEIR_SETS})
    run, _ = check("far.py", warm=warm)
    assert {"far.f", "left.f"} <= known(run).keys()
    assert known(run).items() <= reanalyzed(run).items()
    assert not ((GUARD - {"named.f"}) | {"base.g"}) & known(run).keys()


@pytest.mark.skipif(sys.platform == "win32", reason="symlinks need a privilege on Windows")
def test_symlink_with_new_target(here: Path) -> None:
    Path("linked.py").symlink_to("lead.py")
    write({"by_link.py": "from linked import lead\ndef f():\n    if lead():\n        work()\n"})
    warm = prepared()
    assert "by_link.f" in known(check("far.py", warm=warm)[0])
    Path("linked.py").unlink()
    Path("linked.py").symlink_to("leave.py")
    run, _ = check("far.py", warm=warm)
    assert "by_link.f" not in known(run)
    warm.prepare(never_cancel)
    assert known(run)["by_link.f"][0][1][1][0] == TOP


def test_many_new_files_reanalyze_everything(here: Path, analyzed: list[str]) -> None:
    warm = prepared()
    write({f"m{number}.py": "" for number in range(40)})
    assert "lead.lead" in known(check("far.py", warm=warm)[0])
    write({f"n{number}.py": "" for number in range(41)})
    assert "lead.lead" not in known(check("far.py", warm=warm)[0])


def test_many_changes_reanalyze_everything(here: Path, analyzed: list[str]) -> None:
    write({f"m{number}.py": "def f():\n    work()\n" for number in range(41)})
    warm = prepared()
    for number in range(40):
        write({f"m{number}.py": "def f():\n    rest()\n"})
    assert "lead.lead" in known(check("far.py", warm=warm)[0])
    for number in range(41):
        write({f"m{number}.py": "def f():\n    pause()\n"})
    assert "lead.lead" not in known(check("far.py", warm=warm)[0])


def is_related(module: Module | None) -> bool:
    return module is not None and module.family is not None


def test_replaced_module_is_freed(here: Path) -> None:
    """A module that the garbage collector no longer scans references nothing newer."""
    warm = prepared()
    run, _ = check("lead.py", warm=warm)
    before = run.link()[0]["lead.py"]
    assert before is not None
    assert is_related(before)
    write({"lead.py": PROJECT["lead.py"] + "more = 1\n"})
    run, _ = check("lead.py", warm=warm)
    after = run.link()[0]
    assert after["lead.py"] is not before
    assert not is_related(before)
    assert all(map(is_related, after.values()))


def test_fix_verification_does_not_change_the_kept_run(here: Path) -> None:
    """The verifying run sees a state of the project that may never exist."""
    run, _ = check("heir.py", warm=prepared())
    modules, project = run.link()
    before = {relative: (module, module.family) for relative, module in modules.items() if module is not None}
    changed = of_text("class Base: pass\n", here / "base.py", here)
    for other, shares in ((run.with_sources(changed), False), (run.succeeded_by(changed), True)):
        after = other.link()[0]
        assert (after["heir.py"] is modules["heir.py"]) is shares
        kept = all(module.family is family for module, family in before.values())
        assert kept is not shares
    assert project is not other.link()[1]


def test_tidy_collects_and_freezes_objects(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that preparation made are frozen, and collected once there is no more work."""
    done: list[str] = []
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: done.append(name))
    monkeypatch.setattr(kept_module, "MANY_FOLLOWED", 10)
    monkeypatch.setattr(kept_module, "MOST_CHECKS", 3)
    warm = prepared()
    done.clear()
    for expected in (["collect", "freeze"], ["unfreeze", "collect", "freeze"], []):
        warm.tidy()
        assert done == expected
        done.clear()

    for _ in range(3):
        check("far.py", warm=warm)
        warm.prepare(never_cancel)
        assert done == []
        assert warm.is_untidy
    check("far.py", warm=warm)
    warm.prepare(never_cancel)
    assert done == ["collect"]
    assert not warm.is_untidy


def steps() -> st.SearchStrategy[list[tuple[str, str | None]]]:
    every = [(name, text) for name, texts in STATES.items() for text in (PROJECT.get(name), *texts)]
    return st.lists(st.sampled_from(every), min_size=1, max_size=8)


@pytest.mark.parametrize("remembered", [2, 20_000])
@given(steps=steps(), looks=st.lists(st.booleans(), min_size=8, max_size=8))
@hypothesis_settings(max_examples=bound(8, 60), deadline=None, suppress_health_check=list(HealthCheck))
def test_kept_results_match_fresh_analysis(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    remembered: int,
    steps: list[tuple[str, str | None]],
    looks: list[bool],
) -> None:
    """Also with a small query cache."""
    monkeypatch.setattr(Resolver, "denoted", query(shared=True, keep=remembered)(DENOTED.compute))
    for name in STATES.keys() - PROJECT.keys():
        put(name, None)
    write(PROJECT)
    warm = prepared()
    for (name, text), is_calm in zip(steps, looks, strict=False):
        put(name, text)
        run, found = check("far.py", warm=warm)
        expected = reanalyzed(run)
        assert known(run).items() <= expected.items(), (name, text)
        assert found.outcome == check("far.py")[1].outcome
        if is_calm:
            warm.prepare(never_cancel)
            warm.tidy()
            assert known(run).items() <= expected.items(), (name, text)


def every_edit() -> Iterator[tuple[str, str | None]]:
    for name, texts in STATES.items():
        for text in texts:
            yield name, text
            yield name, PROJECT.get(name)


def test_each_change_and_its_reversal(here: Path) -> None:
    warm = prepared()
    for name, text in every_edit():
        put(name, text)
        run, _ = check("far.py", warm=warm)
        assert known(run).items() <= reanalyzed(run).items(), (name, text)
        warm.prepare(never_cancel)
        if text is None or "(:" not in text:
            assert known(run) == reanalyzed(run), (name, text)
