"""Explores a scenario: runs its schedules, and reports the first failing one in its simplest form."""

from __future__ import annotations

import functools
import itertools
import time
from typing import TYPE_CHECKING, Final

from fsrace_lint.explore import schedule_tokens, timeline
from fsrace_lint.explore.errors import ExploreError, Nondeterministic
from fsrace_lint.explore.exploration_result import FailingSchedule, Result
from fsrace_lint.explore.moves import Choice, switches
from fsrace_lint.explore.running import jobs, stage
from fsrace_lint.explore.scenario import Bounds, Scenario
from fsrace_lint.explore.search.bounded import Bounded
from fsrace_lint.explore.search.director import Director, onward
from fsrace_lint.explore.search.dpor import Dpor
from fsrace_lint.explore.search.sampled import Sampled
from fsrace_lint.explore.search.shrink import MOST_RUNS, Shrinker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.running.verdict import Failure


FIRST_SCHEDULES: Final = 1000
"""The number of schedules after which those with few preemptions are run before the others."""
DEFAULT_PREEMPTIONS: Final = 2
"""The largest number of preemptions in those schedules."""


def explore(
    function: Callable[[Path, int], object],
    *,
    processes: int = 2,
    setup: Callable[[Path], object] | None = None,
    check: Callable[[Path], object] | None = None,
    agree: bool = False,
    expected: tuple[type[BaseException], ...] | type[BaseException] = (),
    filesystem: str = "posix",
    crash: str = "none",
    distributed: bool = False,
    max_schedules: int = 10_000,
    preemptions: int | None = None,
    samples: int = 0,
    seed: int = 0,
    step_timeout: float = 10.0,
    max_calls: int = 5000,
    shrink: bool = True,
    replay: str | None = None,
) -> Result:
    """Run a function in multiple processes, in every distinct interleaving of their filesystem calls.

    The function is executed many times, in forked processes, in a temporary directory. What it does must
    depend only on the results of its calls.

    Args:
        function: The function that each process runs. Its arguments are the root directory, a
            `pathlib.Path`, and the rank.
        processes: The number of processes.
        setup: Creates the initial files. Its argument is the root directory.
        check: Raises if the resulting files are wrong. Its argument is the root directory. It runs at the
            end, and with crashes after any step.
        agree: Whether all processes must return the same result.
        expected: Exceptions that are not failures.
        filesystem: "posix", or "nfs", where `stat` calls and directory listings can return stale results.
        crash: "none", "kill" to also kill one process or all processes at any call, or "power" to also lose
            data that was not synced.
        distributed: Whether to replace the barriers and object collectives of `torch.distributed`.
        max_schedules: The maximum number of schedules to run in the systematic search.
        preemptions: The maximum number of times to preempt a process that could continue, or None.
        samples: The number of random schedules to run after the systematic search.
        seed: The seed for the random schedules.
        step_timeout: The maximum number of seconds between two calls of a process.
        max_calls: The maximum number of calls in one schedule.
        shrink: Whether to minimize the failing schedule.
        replay: The token of the only schedule to run.

    Returns:
        The result, with the first schedule that fails.

    Raises:
        ExploreError: The exploration cannot run, or it failed.
    """
    jobs.refuse_elsewhere()
    expected = expected if isinstance(expected, tuple) else (expected,)
    scenario = Scenario(
        function,
        processes,
        setup,
        check,
        agree,
        expected,
        filesystem,
        crash,
        distributed,
        step_timeout,
        max_calls,
    ).validated()
    token = None if replay is None else schedule_tokens.read(replay)
    if token is not None:
        scenario = scenario._replace(
            processes=token.processes, filesystem=token.filesystem, crash=token.crash
        ).validated()
    return _explored(scenario, Bounds(max_schedules, preemptions, samples, seed), token, shrink=shrink)


def _explored(
    scenario: Scenario, bounds: Bounds, token: schedule_tokens.ScheduleToken | None, *, shrink: bool
) -> Result:
    from fsrace_lint.explore.process.install import installed  # noqa: PLC0415  # not importable on Windows

    start = time.monotonic()
    with stage.scratch() as folder, jobs.together():
        place = stage.Stage(folder, scenario.setup, scenario.check, scenario.step_timeout)
        with installed(float(place.began + 1), str(place.top), scenario.function) as gate:
            explorer = _Explorer(Director(scenario, place, gate), bounds, shrink=shrink)
            result = explorer.search() if token is None else explorer.replay(token)
    return result._replace(seconds=time.monotonic() - start, runs=explorer.runs)


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'s' if number != 1 else ''}"


class _Explorer:
    def __init__(self, director: Director, bounds: Bounds, *, shrink: bool) -> None:
        self._shrinks = shrink
        self._director = director
        self._bounds = bounds
        self._notes: list[str] = []
        self._unfollowed = False
        self._schedules = 0
        self._has_moves = False

    @property
    def runs(self) -> int:
        """The number of runs that were started."""
        return self._director.runs

    def search(self) -> Result:
        """Run schedules until one fails, all have run, or a bound is reached."""
        reduced, bounded = Dpor(self._director), Bounded(self._director, self._preemptions)
        failed = self._first_failing(self._systematic(reduced, bounded))
        if failed is None and not reduced.is_exhausted:
            sampled = Sampled(self._director, self._bounds.samples, self._bounds.seed)
            failed = self._first_failing(sampled.runs())
        bound = self._bound(reduced, bounded)
        is_by_check = failed is None or (failed.failure is not None and failed.failure.kind == "check")
        if is_by_check and not self._has_moves:
            self._notes.append(
                "no process made a filesystem call in the temporary directory, so nothing was tested:"
                " use paths below the first argument of the function"
            )
        if failed is None:
            # schedules with few preemptions are among the distinct ones
            self._schedules = reduced.finished if reduced.is_exhausted else self._schedules
            return self._result(None, exhaustive=not bound, bound=bound)
        return self._result(self._shrunk(failed), exhaustive=False, bound="the first failure ends it")

    @property
    def _preemptions(self) -> int:
        given = self._bounds.preemptions
        return DEFAULT_PREEMPTIONS if given is None else given

    def _systematic(self, reduced: Dpor, bounded: Bounded) -> Iterator[ScheduleRun]:
        """Yield runs of all distinct interleavings; if these are many, first those with few preemptions."""
        left = self._bounds.schedules
        if self._bounds.preemptions is not None:
            yield from itertools.islice(bounded.runs(), left)
            return
        runs = reduced.runs()
        yield from itertools.islice(runs, min(left, FIRST_SCHEDULES))
        if not reduced.is_exhausted and left > FIRST_SCHEDULES:
            left -= FIRST_SCHEDULES
            before = self._schedules
            yield from itertools.islice(bounded.runs(), min(left // 2, 2 * FIRST_SCHEDULES))
            yield from itertools.islice(runs, left - (self._schedules - before))

    def _bound(self, reduced: Dpor, bounded: Bounded) -> str:
        bounds, scenario = self._bounds, self._director.scenario
        exhausted = reduced.is_exhausted
        if self._unfollowed:
            return "some calls could not be explored; see the notes"
        if bounds.preemptions is not None and bounded.is_exhausted:
            return f"interleavings with more than {count(bounds.preemptions, 'preemption')} were skipped"
        if exhausted and scenario.crash != "none" and scenario.check is not None and scenario.processes > 2:
            return (
                "the state after all processes are killed was checked in only one order of the calls that"
                " commute"
            )
        if exhausted:
            return ""
        said = f"it stopped after {count(bounds.schedules, 'interleaving')}"
        if bounded.complete >= 0:
            said += f", which are all with at most {count(bounded.complete, 'preemption')} and others,"
        return said + (f" and {bounds.samples} random ones (seed {bounds.seed})" if bounds.samples else "")

    def _first_failing(self, runs: Iterator[ScheduleRun]) -> ScheduleRun | None:
        for run in runs:
            self._schedules += 1
            self._notes += [note for note in run.notes if note not in self._notes]
            self._unfollowed = self._unfollowed or run.has_unfollowed
            self._has_moves = self._has_moves or bool(run.trace.moves)
            if run.failure is not None:
                return run
        return None

    def _shrunk(self, failed: ScheduleRun) -> FailingSchedule:
        if failed.failure is None:
            raise ExploreError("cannot minimize a run that did not fail")
        shrinker = Shrinker(self._director, failed.failure)
        schedule = shrinker.shrink(failed.schedule()) if self._shrinks else failed.schedule()
        run = self._director.replay(schedule)
        failure = run.failure
        if failure is None or not failed.failure.is_like(failure):
            raise Nondeterministic(
                f"a schedule failed ({failed.failure.text}) but passed when it was replayed: the code must"
                " depend on nothing but the results of its calls; if it already does, please report a bug"
            )
        if self._fails_alone(run):
            named = {1: "", 2: " from the other process"}
            others = named.get(self._director.scenario.processes, " from the other processes")
            alone = f"process {failure.rank} fails without interference{others}; not a race"
            return self._failing(run, is_least=shrinker.is_least)._replace(reasons=(alone,), fails_alone=True)
        return self._failing(run, is_least=shrinker.is_least)

    def _fails_alone(self, failed: ScheduleRun) -> bool:
        """Return whether a process fails by itself, and also if the others run before any of its calls.

        A process that fails because it needs a file of another one, and does not wait, does not fail alone.
        """
        failure = failed.failure
        if failure is None or failure.rank is None or failure.kind == "hang":
            return False
        rank = failure.rank

        def fails(choose: Callable[[ScheduleRun], Choice | None]) -> bool:
            return failure.is_like(self._director.play(choose).failure)

        def alone(run: ScheduleRun) -> Choice | None:
            is_possible = rank in run.ready() and len(run.trace.moves) < MOST_RUNS
            return Choice(rank) if is_possible else None

        def others_after(calls: int, run: ScheduleRun) -> Choice | None:
            is_next = len(run.trace.moves) < calls or run.ready() == [rank]
            return Choice(rank) if is_next else onward(run, [rank])

        def in_turn(run: ScheduleRun) -> Choice | None:
            return Choice(min(run.ready(), key=lambda each: run.ranks[each].made))

        calls = sum(move.choice.rank == rank for move in failed.trace.moves)
        return (
            fails(alone)
            and fails(in_turn)
            and all(fails(functools.partial(others_after, first)) for first in range(calls))
        )

    def _failing(self, run: ScheduleRun, *, is_least: bool) -> FailingSchedule:
        failure: Failure | None = run.failure
        if failure is None:
            raise ExploreError("cannot report a run that did not fail")
        scenario, moves = self._director.scenario, tuple(run.trace.moves)
        return FailingSchedule(
            failure.kind,
            failure.text,
            failure.details,
            moves,
            schedule_tokens.write(scenario, moves),
            tuple(timeline.reason(run)),
            switches(run.schedule()),
            is_least,
            timeline.draw(moves, scenario.processes),
        )

    def replay(self, token: schedule_tokens.ScheduleToken) -> Result:
        """Run one schedule."""
        run = self._director.replay(token.schedule)
        self._schedules += 1
        self._notes += run.notes
        if schedule_tokens.digest(run.trace.moves) != token.digest:
            raise Nondeterministic("the token does not match: the code or the scenario has changed")
        failing = None if run.failure is None else self._failing(run, is_least=False)._replace(is_replay=True)
        return self._result(failing, exhaustive=False, bound="one schedule was replayed")

    def _result(self, failing: FailingSchedule | None, *, exhaustive: bool, bound: str) -> Result:
        return Result(failing is None, self._schedules, exhaustive, failing, 0.0, tuple(self._notes), bound)
