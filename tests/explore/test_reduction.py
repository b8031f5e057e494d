"""Partial-order reduction loses no outcome: random programs, reduced versus run in every order."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.exploring import directed
from support.programs import (
    ACTIONS,
    CALLS,
    DATA,
    RETRIES,
    Program,
    assert_same_outcomes,
    checked,
    outcomes_of_all_orders,
    reduced,
    scenario_of,
)

from fsrace_lint.explore.moves import Choice, Move, NamedFootprint, Trace
from fsrace_lint.explore.running.retry_detector import RetryDetector
from fsrace_lint.explore.running.run import ScheduleRun
from fsrace_lint.explore.search.dpor import Dpor

QUERIES = ["exists d", "size of f", "list d", "mkdir d"]
MUTATIONS = ["mkdir d", "rmdir d", "mkdir d/e", "append f", "unlink f", "rename d"]
programs = st.lists(st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=2), min_size=2, max_size=2)


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


def test_reduction_spares_a_victim_that_repeats_itself() -> None:
    """The victim is in a retry loop when it is killed, but it could also have ended before."""
    program = [["other is alive", "other is alive"], ["other is alive", "kill other"]]
    found = {outcome[:2] for outcome in reduced(scenario_of(program, lifetimes=True))}  # type: ignore[index]
    assert ("[True, True]", "[True, 'ProcessLookupError']") in found


def test_reduction_kills_a_process_that_waits_while_the_others_are_asleep() -> None:
    """The holder of a lock sees the other process live, and then dead, although it was killed in `flock`."""
    scenario = scenario_of([["hold lock and look"], ["wait for lock"]], lifetimes=True, crash="kill")
    with directed(scenario) as director:
        runs = ["".join(f"{move.name} " for move in run.trace.moves) for run in Dpor(director).runs()]
    assert any("kill exists mkdir killed kill " in run for run in runs)


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
