"""Explores a scenario: runs its schedules, and reports the first failing one in its simplest form."""

from __future__ import annotations

import contextlib
import functools
import itertools
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.explore import schedule_tokens, timeline
from fsrace_lint.explore.errors import ExploreError, Nondeterministic
from fsrace_lint.explore.exploration_result import FailingSchedule, Result
from fsrace_lint.explore.moves import Choice, switches
from fsrace_lint.explore.progress import Progress
from fsrace_lint.explore.running import jobs, stage
from fsrace_lint.explore.running.interruption import Interrupted, interruption
from fsrace_lint.explore.scenario import Bounds, Scenario
from fsrace_lint.explore.search import saved_search
from fsrace_lint.explore.search.bounded import Bounded, Sampled
from fsrace_lint.explore.search.director import Director, onward
from fsrace_lint.explore.search.dpor import Dpor
from fsrace_lint.explore.search.shrink import MOST_RUNS, Shrinker

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.running.verdict import Failure


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
    shrink: bool = True,
    replay: str | None = None,
    state: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], object] | None = None,
    raise_signals: bool = True,
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
        shrink: Whether to minimize the failing schedule.
        replay: The token of the only schedule to run.
        state: A file for the systematic search. A search that stops before its end is saved in it, and a
            search that finds it continues there.
        progress: Is called between two runs.
        raise_signals: Whether a signal that has stopped the search, such as Ctrl-C, has its usual effect at
            the end. If not, the result names it.

    Returns:
        The result, with the first schedule that fails.

    Raises:
        KeyboardInterrupt: Ctrl-C has stopped the search; its text is the report.
        ExploreError: The exploration cannot run, or it failed.
    """
    jobs.refuse_elsewhere()
    expected = expected if isinstance(expected, tuple) else (expected,)
    scenario = Scenario(
        function, processes, setup, check, agree, expected, filesystem, crash, distributed, step_timeout
    ).validated()
    token = None if replay is None else schedule_tokens.read(replay)
    if token is not None:
        scenario = scenario._replace(
            processes=token.processes, filesystem=token.filesystem, crash=token.crash
        ).validated()
    bounds = Bounds(max_schedules, preemptions, samples, seed)
    watch = _Watch(progress or (lambda _: None), None if state is None else Path(state))
    result = _explored(scenario, bounds, token, watch, shrink=shrink)
    if result.interrupted and raise_signals:
        try:
            signal.raise_signal(result.interrupted)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(str(result)) from None
    return result


class _Watch(NamedTuple):
    """What is told of a search, and kept of it, outside of its result."""

    progress: Callable[[Progress], object]
    file: Path | None


def _explored(
    scenario: Scenario,
    bounds: Bounds,
    token: schedule_tokens.ScheduleToken | None,
    watch: _Watch,
    *,
    shrink: bool,
) -> Result:
    from fsrace_lint.explore.process.install import installed  # noqa: PLC0415  # not importable on Windows

    start = time.monotonic()
    result, runs = Result(True, 0, False, None, 0.0, (), "it was interrupted before the first run"), 0
    with interruption.noted(), contextlib.suppress(Interrupted), stage.scratch() as folder, jobs.together():
        place = stage.Stage(folder, scenario.setup, scenario.check, scenario.step_timeout)
        with installed(float(place.began + 1), str(place.top), scenario.function) as gate:
            explorer = _Explorer(Director(scenario, place, gate), bounds, watch, shrink=shrink)
            result = explorer.search() if token is None else explorer.replay(token)
            runs = explorer.runs
    return result._replace(seconds=time.monotonic() - start, runs=runs, interrupted=interruption.number)


class _Explorer:
    def __init__(self, director: Director, bounds: Bounds, watch: _Watch, *, shrink: bool) -> None:
        self._shrinks = shrink
        self._watch = watch
        self._began = time.monotonic()
        director.on_run = lambda: watch.progress(self._progress())
        self._stage = "search"
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
        bounds = self._bounds
        systematic = (
            Dpor(self._director)
            if bounds.preemptions is None
            else Bounded(self._director, bounds.preemptions)
        )
        self._load(systematic)
        failed = self._first_failing(itertools.islice(systematic.runs(), bounds.schedules))
        exhausted = systematic.is_exhausted
        self._save(systematic, is_over=exhausted or failed is not None)
        if failed is None and not exhausted:
            self._stage = "samples"
            sampled = Sampled(self._director, bounds.samples, bounds.seed)
            failed = self._first_failing(sampled.runs())
        bound = self._bound(exhausted)
        is_by_check = failed is None or (failed.failure is not None and failed.failure.kind == "check")
        if is_by_check and self._schedules and not self._has_moves:
            self._notes.append(
                "no process made a filesystem call in the temporary directory, so nothing was tested:"
                " use paths below the first argument of the function"
            )
        if failed is None:
            return self._result(None, exhaustive=not bound, bound=bound)
        self._stage = "shrink"
        return self._result(self._reported(failed), exhaustive=False, bound="the first failure ends it")

    def _reported(self, failed: ScheduleRun) -> FailingSchedule:
        """Minimize and repeat the failing schedule, or report it as it is if a second signal arrives."""
        with contextlib.suppress(Interrupted):
            interruption.check()
        try:
            return self._shrunk(failed)
        except Interrupted:
            return self._failing(failed, is_least=False)._replace(is_confirmed=False)

    def _bound(self, exhausted: bool) -> str:
        bounds, scenario = self._bounds, self._director.scenario
        if interruption.number and not exhausted:
            return f"it was interrupted by {signal.Signals(interruption.number).name}"
        if self._unfollowed:
            return "some calls could not be explored; see the notes"
        if exhausted and bounds.preemptions is not None:
            return (
                f"interleavings with more than {bounds.preemptions}"
                f" preemption{'s' if bounds.preemptions != 1 else ''} were skipped"
            )
        if exhausted and scenario.crash != "none" and scenario.check is not None and scenario.processes > 2:
            return (
                "the state after all processes are killed was checked in only one order of the calls that"
                " commute"
            )
        if exhausted:
            return ""
        said = f"it stopped after {bounds.schedules} interleaving{'s' if bounds.schedules != 1 else ''}"
        return said + (f" and {bounds.samples} random ones (seed {bounds.seed})" if bounds.samples else "")

    def _first_failing(self, runs: Iterator[ScheduleRun]) -> ScheduleRun | None:
        with contextlib.suppress(Interrupted):
            interruption.check()
            for run in () if interruption.number else runs:
                self._schedules += 1
                self._notes += [note for note in run.notes if note not in self._notes]
                self._unfollowed = self._unfollowed or run.has_unfollowed
                self._has_moves = self._has_moves or bool(run.trace.moves)
                if run.failure is not None:
                    return run
        return None

    def _progress(self) -> Progress:
        bounds, seconds = self._bounds, time.monotonic() - self._began
        most = bounds.samples if self._stage == "samples" else bounds.schedules
        return Progress(self._schedules, self.runs, seconds, most, self._stage)

    def _load(self, search: object) -> None:
        """Continue a saved search."""
        if self._watch.file is None:
            return
        scenario = self._director.scenario
        found = saved_search.load(self._watch.file, saved_search.digest(scenario, self._bounds), search)
        self._schedules = found.get("schedules", 0)
        self._notes = found.get("notes", [])
        self._unfollowed = found.get("unfollowed", False)
        self._has_moves = found.get("has_moves", False)

    def _save(self, search: object, *, is_over: bool) -> None:
        """Save a search that is not over, so that the next one continues it."""
        file = self._watch.file
        if file is None:
            return
        if is_over:
            file.unlink(missing_ok=True)
            return
        counts = {
            "schedules": self._schedules,
            "notes": self._notes,
            "unfollowed": self._unfollowed,
            "has_moves": self._has_moves,
        }
        identity = saved_search.digest(self._director.scenario, self._bounds)
        saved_search.save(file, identity, search, counts)

    def _shrunk(self, failed: ScheduleRun) -> FailingSchedule:
        if failed.failure is None:
            raise ExploreError("cannot minimize a run that did not fail")
        shrinker = Shrinker(self._director, failed.failure)
        schedule = failed.schedule()
        if self._shrinks and not interruption.number:
            with contextlib.suppress(Interrupted):
                shrinker.shrink(schedule)
            schedule = shrinker.best or schedule
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
        notes = tuple(self._notes)
        return Result(failing is None, self._schedules, exhaustive, failing, 0.0, notes, bound)
