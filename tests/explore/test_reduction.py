"""Partial-order reduction loses no outcome: random programs, reduced versus run in every order."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from support.exploring import directed
from support.sampling import bound

from fsrace_lint.explore.identity import FIRST_PID
from fsrace_lint.explore.moves import Choice, Move, NamedFootprint, Trace
from fsrace_lint.explore.running.retry_detector import RetryDetector
from fsrace_lint.explore.running.run import ScheduleRun
from fsrace_lint.explore.scenario import Scenario
from fsrace_lint.explore.search.bounded import Bounded
from fsrace_lint.explore.search.dpor import Dpor

MOST_ORDERS = 400
"""Programs with more orders are skipped, because each order is a run of real processes."""

Call = Callable[[Path, int], object]
Program = list[list[str]]


def append(root: Path, rank: int) -> None:
    with open(root / "f", "a") as stream:
        stream.write(str(rank))


def overwrite(root: Path, rank: int) -> None:
    with open(root / "f", "w") as stream:
        stream.write(str(rank))


MUCH = 3 * 4096


def append_much(root: Path, rank: int) -> int:
    descriptor = os.open(root / "f", os.O_WRONLY | os.O_APPEND)
    return os.write(descriptor, str(rank).encode() * MUCH)


def overwrite_much(root: Path, rank: int) -> int:
    descriptor = os.open(root / "f", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    return os.write(descriptor, str(rank).encode() * MUCH)


def read_much(root: Path, rank: int) -> str:
    found = os.read(os.open(root / "m", os.O_RDONLY), 10 * MUCH)
    return f"{len(found)} {sorted(set(found))}"


def change_much(root: Path, rank: int) -> int:
    return os.pwrite(os.open(root / "m", os.O_WRONLY), str(rank).encode() * MUCH, 4096)


def copy_much(root: Path, rank: int) -> int:
    source, target = os.open(root / "m", os.O_RDONLY), os.open(root / "f", os.O_WRONLY)
    return os.sendfile(target, source, 0, 10 * MUCH)


def locked(root: Path, operation: int) -> bool:
    descriptor = os.open(root / "lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, operation)
        return os.path.exists(root / "f")
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def locked_by_pid(root: Path) -> str:
    try:
        descriptor = os.open(root / "owner", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        owner = int((root / "owner").read_text() or 0)
        if is_alive(owner):
            return "busy"
        os.unlink(root / "owner")
        return "stale"
    os.write(descriptor, str(os.getpid()).encode())
    os.close(descriptor)
    return "mine"


def slept(root: Path, rank: int) -> float:
    time.sleep(1)
    os.path.exists(root / "f")
    return time.monotonic()


def retried(act: Callable[[], bool], pause: float = 0) -> bool:
    """Try four times: the last two are repetitions, before which the other process comes first."""
    for _ in range(4):
        if act():
            return True
        if pause:
            time.sleep(pause)
    return False


def created(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def tried_lock(root: Path) -> bool:
    descriptor = os.open(root / "lock", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def made_and_unmade(root: Path, rank: int) -> bool:
    """Fail while the other process does the same, and leave nothing behind then."""
    os.mkdir(root / f"r{rank}")
    if os.path.exists(root / "x"):
        os.rmdir(root / f"r{rank}")
        return False
    return True


def aged(root: Path, rank: int) -> bool:
    """Wait for a file, but no longer than a minute."""
    end = time.monotonic() + 60
    while not os.path.exists(root / "x"):
        if time.monotonic() > end:
            return False
        time.sleep(1)
    return True


RETRIES: dict[str, Call] = {
    "spin for x": lambda root, _: retried(lambda: created(root / "x")),
    "sleep for x": lambda root, _: retried(lambda: created(root / "x"), 1),
    "await x": lambda root, _: retried(lambda: os.path.exists(root / "x"), 1),
    "await no x": lambda root, _: retried(lambda: not os.path.exists(root / "x")),
    "retry lock": lambda root, _: retried(lambda: tried_lock(root), 1),
    "undo": lambda root, rank: retried(lambda: made_and_unmade(root, rank)),
    "await x for a minute": aged,
}
ACTIONS: dict[str, Call] = {
    "create x": lambda root, _: os.close(os.open(root / "x", os.O_CREAT | os.O_EXCL)),
    "unlink x": lambda root, _: os.unlink(root / "x"),
    "exists x": lambda root, _: os.path.exists(root / "x"),
    "exists r0": lambda root, _: os.path.exists(root / "r0"),
    "lock": lambda root, _: locked(root, fcntl.LOCK_EX),
}
CALLS: dict[str, Call] = {
    "mkdir d": lambda root, _: os.mkdir(root / "d"),
    "mkdir d/e": lambda root, _: os.mkdir(root / "d" / "e"),
    "rmdir d": lambda root, _: os.rmdir(root / "d"),
    "exists d": lambda root, _: os.path.exists(root / "d"),
    "overwrite f": overwrite,
    "append f": append,
    "read f": lambda root, _: (root / "f").read_text(),
    "size of f": lambda root, _: os.stat(root / "f").st_size,
    "truncate f": lambda root, _: os.truncate(root / "f", 0),
    "unlink f": lambda root, _: os.unlink(root / "f"),
    "rename f": lambda root, _: os.rename(root / "f", root / "g"),
    "rename d": lambda root, _: os.rename(root / "d", root / "e"),
    "list": lambda root, _: os.listdir(root),
    "list d": lambda root, _: [entry.name for entry in os.scandir(root / "d")],
    "link f": lambda root, _: os.link(root / "f", root / "h"),
    "symlink s": lambda root, _: os.symlink("f", root / "s"),
    "read s": lambda root, _: (root / "s").read_text(),
    "create x": lambda root, _: os.close(os.open(root / "x", os.O_CREAT | os.O_EXCL)),
    "lock": lambda root, _: locked(root, fcntl.LOCK_EX),
    "try lock": lambda root, _: locked(root, fcntl.LOCK_EX | fcntl.LOCK_NB),
    "share lock": lambda root, _: locked(root, fcntl.LOCK_SH),
    "sleep": slept,
    "append much": append_much,
    "overwrite much": overwrite_much,
    "read much": read_much,
    "change much": change_much,
    "copy much": copy_much,
    "truncate m": lambda root, _: os.truncate(root / "m", 5000),
}
PROCESS_CALLS: dict[str, Call] = {
    "other is alive": lambda _, rank: is_alive(FIRST_PID + 1 - rank),
    "other is in /proc": lambda _, rank: os.path.exists(f"/proc/{FIRST_PID + 1 - rank}"),
    "other is listed": lambda _, rank: str(FIRST_PID + 1 - rank) in os.listdir("/proc"),
    "kill other": lambda _, rank: os.kill(FIRST_PID + 1 - rank, signal.SIGKILL),
    "pid lock": lambda root, _: locked_by_pid(root),
    "my pid": lambda root, rank: (root / f"pid{rank}").symlink_to(str(os.getpid())),
}
DATA = [name for name in CALLS if name.endswith((" f", " m", " much"))]


def scenario_of(program: Program, **options: object) -> Scenario:
    def setup(root: Path) -> None:
        (root / "d").mkdir()
        (root / "f").write_text("old")
        (root / "m").write_text("m" * 2 * MUCH)

    def function(root: Path, rank: int) -> list[object]:
        results: list[object] = []
        for name in program[rank]:
            try:
                results.append((CALLS | PROCESS_CALLS | ACTIONS | RETRIES)[name](root, rank))
            except OSError as error:
                results.append(type(error).__name__)
        return results

    return Scenario(function, processes=len(program), setup=setup)._replace(**options)  # type: ignore[arg-type]


def reduced(scenario: Scenario) -> set[object]:
    with directed(scenario) as director:
        search = Dpor(director)
        outcomes: set[object] = {run.outcome() for run in search.runs()}
        assert search.is_exhausted
        return outcomes


def outcomes_of_all_orders(scenario: Scenario) -> set[object] | None:
    """Return the outcomes of all orders, or None if there are too many orders."""
    with directed(scenario) as director:
        search = Bounded(director, None)
        outcomes: set[object] = {run.outcome() for run in itertools.islice(search.runs(), MOST_ORDERS)}
        return outcomes if search.is_exhausted else None


def assert_same_outcomes(scenario: Scenario) -> None:
    every = outcomes_of_all_orders(scenario)
    assume(every is not None)
    assert reduced(scenario) == every


QUERIES = ["exists d", "size of f", "list d", "mkdir d"]
MUTATIONS = ["mkdir d", "rmdir d", "mkdir d/e", "append f", "unlink f", "rename d"]
programs = st.lists(st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=2), min_size=2, max_size=2)
checked = settings(
    max_examples=bound(2, 8),
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@checked
@given(programs)
def test_reduction_finds_every_outcome(program: Program) -> None:
    assert_same_outcomes(scenario_of(program))


@checked
@given(programs)
def test_reduction_finds_every_outcome_of_a_crash(program: Program) -> None:
    assert_same_outcomes(scenario_of([calls[:1] for calls in program], crash="kill"))


@checked
@given(
    st.lists(st.lists(st.sampled_from(DATA), min_size=1, max_size=1), min_size=2, max_size=2),
    st.sampled_from(["posix", "nfs"]),
    st.sampled_from(["none", "kill"]),
    st.sampled_from([(), ("ENOSPC",), ("EIO", "EINTR")]),
)
@example([["append much"], ["overwrite much"]], "posix", "none", ())
@example([["copy much"], ["change much"]], "posix", "none", ())
@example([["append much"], ["read much"]], "nfs", "none", ("ESTALE",))
def test_reduction_finds_every_outcome_of_data_in_parts(
    program: Program, filesystem: str, crash: str, faults: tuple[str, ...]
) -> None:
    assert_same_outcomes(scenario_of(program, filesystem=filesystem, crash=crash, faults=faults))


@checked
@given(programs)
@example([["append f", "size of f"], ["rename f"]])  # the write can land under either name
def test_reduction_finds_every_outcome_under_nfs(program: Program) -> None:
    assert_same_outcomes(scenario_of(program, filesystem="nfs"))


@checked
@given(
    st.lists(st.sampled_from(QUERIES), min_size=2, max_size=2),
    st.lists(st.sampled_from(MUTATIONS), min_size=2),
)
def test_skipped_stale_answer_is_current_in_another_order(queries: list[str], mutations: list[str]) -> None:
    scenario = scenario_of([queries, mutations[:2]], filesystem="nfs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScheduleRun, "must_know", lambda *_: True)
        every = outcomes_of_all_orders(scenario)
    assume(every is not None)
    assert reduced(scenario) == every


seeing = st.sampled_from(["other is alive", "other is in /proc", "other is listed", "kill other", "my pid"])
seen = st.sampled_from(["mkdir d", "mkdir d/e", "rmdir d", "unlink f", "kill other", "my pid", "exists d"])


@checked
@given(st.lists(seeing, min_size=1, max_size=2), st.lists(seen, min_size=1, max_size=2))
@example(["kill other"], ["mkdir d/e", "unlink f"])  # the victim can have made any number of its calls
@example(["pid lock"], ["other is alive"])
def test_reduction_finds_every_outcome_of_processes_that_see_each_other(
    one: list[str], two: list[str]
) -> None:
    assert_same_outcomes(scenario_of([one, two], lifetimes=True))


@checked
@given(seeing, seen, st.booleans())
@example("try lock", "lock", False)  # a process can be killed while it waits
def test_reduction_finds_every_outcome_of_kills_that_are_seen(one: str, two: str, both: bool) -> None:
    kills = 2 if both else 1
    assert_same_outcomes(scenario_of([[one], [two]], crash="kill", kills=kills, lifetimes=True))


@checked
@given(seeing, seen, st.booleans())
@example("other is alive", "mkdir d/e", True)
def test_reduction_finds_every_outcome_of_restarts(one: str, two: str, same_pids: bool) -> None:
    options = {"crash": "kill", "restarts": 1, "same_pids": same_pids, "lifetimes": True}
    assert_same_outcomes(scenario_of([[one], [two]], **options))


@checked
@given(
    st.sampled_from(sorted(RETRIES)),
    st.lists(st.sampled_from(sorted(ACTIONS | RETRIES)), max_size=1),
    st.lists(st.sampled_from(sorted(ACTIONS)), min_size=1, max_size=2),
)
@example("await x", [], ["create x", "unlink x"])
@example("spin for x", ["spin for x"], ["create x", "unlink x"])
@example("await x for a minute", [], ["create x", "exists x"])
def test_fair_order_loses_no_outcome(retry: str, more: list[str], others: list[str]) -> None:
    scenario = scenario_of([[retry, *more], others])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RetryDetector, "gives_way", property(lambda _: False))
        every = outcomes_of_all_orders(scenario)
    assume(every is not None)
    assert reduced(scenario) == every


@pytest.mark.parametrize(
    ("program", "most"),
    [
        ([["mkdir d/e"], ["read f"]], 1),
        ([["append f"], ["append f"]], 3),
        ([["append much"], ["append much"]], 2),
        ([["append much"], ["overwrite much"]], 3),
        ([["lock"], ["lock"]], 4),
        ([["share lock"], ["share lock"]], 2),
        ([["exists d"], ["exists d"]], 1),
    ],
)
def test_independent_calls_are_run_once(program: Program, most: int) -> None:
    with directed(scenario_of(program)) as director:
        assert len(list(Dpor(director).runs())) <= most


def test_reduction_finds_every_outcome_of_three_processes() -> None:
    scenario = scenario_of([["mkdir d"], ["rmdir d"], ["exists d"]])
    assert reduced(scenario) == outcomes_of_all_orders(scenario)


def move(rank: int, reads: str = "", writes: str = "", adds: str = "") -> Move:
    kinds = [frozenset(("file", name, "") for name in names) for names in (reads, writes, adds)]
    return Move(Choice(rank), "call", "", "", "", NamedFootprint(*kinds))


@pytest.mark.parametrize(
    ("one", "two", "depend"),
    [
        (move(0, reads="a"), move(1, reads="a"), False),
        (move(0, reads="a"), move(1, writes="a"), True),
        (move(0, writes="a"), move(1, writes="a"), True),
        (move(0, writes="a"), move(1, writes="b"), False),
        (move(0, adds="a"), move(1, adds="a"), False),
        (move(0, adds="a"), move(1, reads="a"), True),
        (move(0, adds="a"), move(1, writes="a"), True),
    ],
)
def test_footprints_decide_which_calls_are_dependent(one: Move, two: Move, depend: bool) -> None:
    assert one.footprint.depends_on(two.footprint) is depend
    assert two.footprint.depends_on(one.footprint) is depend
    assert bool(one.footprint.spoils(two.footprint) | two.footprint.spoils(one.footprint)) is depend
    trace = Trace(2)
    trace.append(one)
    assert trace.append(two) == ([0] if depend else [])
    assert trace.is_before(0, 1) is depend


def test_races_are_between_adjacent_calls_only() -> None:
    trace = Trace(3)
    for each in (
        move(0, writes="a"),
        move(1, reads="a", writes="b"),
        move(2, reads="b"),
        move(2, writes="a"),
    ):
        trace.append(each)
    assert trace.races == [[], [0], [1], []]
    assert trace.first_movers(0, 1) == [1]
