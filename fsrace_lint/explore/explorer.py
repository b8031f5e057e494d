"""Explores a scenario: runs its schedules, and reports the first failing one in its simplest form."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore import schedule_tokens
from fsrace_lint.explore.errors import ExploreError, Nondeterministic
from fsrace_lint.explore.exploration_result import Coverage, FailingSchedule, Result
from fsrace_lint.explore.failure_report import FailureReport
from fsrace_lint.explore.moves import EVERYTHING
from fsrace_lint.explore.progress import Progress
from fsrace_lint.explore.running import jobs, stage
from fsrace_lint.explore.running.interruption import Interrupted, interruption
from fsrace_lint.explore.running.run import LifetimesMatter
from fsrace_lint.explore.scenario import Bounds, Scenario
from fsrace_lint.explore.search import saved_search
from fsrace_lint.explore.search.bounded import Bounded
from fsrace_lint.explore.search.director import Director
from fsrace_lint.explore.search.dpor import Dpor
from fsrace_lint.explore.search.sampled import Sampled

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from fsrace_lint.explore.running.run import ScheduleRun


_NOTHING: Final = (
    "no process made a filesystem call in the temporary directory, so nothing was tested: use paths below the"
    " first argument of the function"
)
FIRST_SCHEDULES: Final = 1000
"""The number of schedules after which those with few preemptions are run before the others."""
MOST_FEW: Final = 2 * FIRST_SCHEDULES
"""The maximum number of schedules with few preemptions."""
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
    kills: int = 1,
    restarts: int = 0,
    same_pids: bool = False,
    nodes: int = 1,
    distributed: bool = False,
    faults: tuple[str, ...] | str = (),
    max_schedules: int = 10_000,
    preemptions: int | None = None,
    samples: int = 0,
    seed: int = 0,
    step_timeout: float = 10.0,
    allow_outside: bool = False,
    max_calls: int = 5000,
    shrink: bool = True,
    shrink_runs: int = Bounds().shrink_runs,
    replay: str | None = None,
    resume: str | os.PathLike[str] | None = None,
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
        filesystem: "posix", or levels of NFS with commas between them: "nfs-attributes", "nfs-names",
            "nfs-data", "nfs-handles", "nfs-nolock", or "nfs" for all but the last.
        crash: "none", "kill" to also kill one process or all processes at any call, "power" to also lose
            names and data that were not synced, or "power-unordered" to lose names in any order.
        kills: The maximum number of processes that are killed in a schedule, with crashes.
        restarts: The number of times that each killed process starts again, beside the others.
        same_pids: Whether a process that starts again gets its old process id, as in a container.
        nodes: The number of nodes that the processes are divided among. Each has a host name, and its own
            process ids, which can be equal.
        distributed: Whether to replace the barriers and object collectives of `torch.distributed`.
        faults: Names of errors, such as "ENOSPC". In each schedule, one call can get one of them.
        max_schedules: The maximum number of schedules to run in the systematic search.
        preemptions: The maximum number of times to preempt a process that could continue, or None.
        samples: The number of random schedules to run after the systematic search.
        seed: The seed for the random schedules.
        step_timeout: The maximum number of seconds between two calls of a process.
        allow_outside: Whether the processes may change files outside of the temporary directory.
        max_calls: The maximum number of calls in one schedule.
        shrink: Whether to minimize the failing schedule.
        shrink_runs: The maximum number of runs that minimize the failing schedule.
        replay: The token of the only schedule to run.
        resume: A file for the systematic search. A search that stops before its end is saved in it, and a
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
        allow_outside,
        max_calls,
    )
    scenario = scenario._replace(
        kills=kills,
        restarts=restarts,
        same_pids=same_pids,
        nodes=nodes,
        faults=(faults,) if isinstance(faults, str) else tuple(faults),
    ).validated()
    token = None if replay is None else schedule_tokens.read(replay)
    if token is not None:
        scenario = token.applied_to(scenario).validated()
    bounds = Bounds(max_schedules, preemptions, samples, seed, shrink_runs if shrink else 0)
    watch = _Watch(progress or (lambda _: None), None if resume is None else Path(resume))
    result = _explored(scenario, bounds, token, watch)
    if result.interrupted and raise_signals:
        try:
            signal.raise_signal(result.interrupted)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(str(result)) from None
    return result


class _Watch(NamedTuple):
    """Where a search reports its progress, and the file that keeps it if it stops before its end."""

    progress: Callable[[Progress], object]
    file: Path | None


def _explored(
    scenario: Scenario, bounds: Bounds, token: schedule_tokens.ScheduleToken | None, watch: _Watch
) -> Result:
    from fsrace_lint.explore.process.install import installed  # noqa: PLC0415  # not importable on Windows

    start = time.monotonic()
    needs_lifetimes = scenario.lifetimes or scenario.restarts > 0
    result, runs = Result(True, 0, False, None, 0.0, (), "it was interrupted before the first run"), 0
    with (
        interruption.noted(),
        contextlib.suppress(Interrupted),
        stage.scratch(scenario.name) as folder,
        jobs.together(),
    ):
        place = stage.Stage(folder, scenario.setup, scenario.check, scenario.step_timeout)
        gates = installed(float(place.began + 1), str(place.top), place.watch)
        with contextlib.closing(place.watch), gates as gate:
            director = Director(scenario._replace(lifetimes=needs_lifetimes), place, gate)
            try:
                result = _result(director, bounds, token, watch)
            except LifetimesMatter:
                director.follow_lifetimes()
                result = _result(director, bounds, token, watch)
            runs = director.runs
    return result._replace(seconds=time.monotonic() - start, runs=runs, interrupted=interruption.number)


def _result(
    director: Director, bounds: Bounds, token: schedule_tokens.ScheduleToken | None, watch: _Watch
) -> Result:
    explorer = _Explorer(director, bounds, watch)
    return explorer.search() if token is None else explorer.replay(token)


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}{'s' if number != 1 else ''}"


class _Explorer:
    def __init__(self, director: Director, bounds: Bounds, watch: _Watch) -> None:
        self._watch = watch
        self._began = time.monotonic()
        director.on_run = lambda: watch.progress(self._progress())
        self._stage = "search"
        self._few = 0
        self._director = director
        self._bounds = bounds
        self._notes: list[str] = []
        self._unfollowed: dict[tuple[str, str], str] = {}
        self._followed: set[tuple[str, str]] = set()
        self._schedules = 0
        self._crash_bound = ""
        self._assumed: set[str] = set()
        self._report = FailureReport(director, bounds.shrink_runs)

    def search(self) -> Result:
        """Run schedules until one fails, all have run, or a bound is reached."""
        reduced, bounded = Dpor(self._director), Bounded(self._director, self._preemptions)
        self._load(reduced, bounded)
        failed = self._first_failing(self._systematic(reduced, bounded))
        is_over = reduced.is_exhausted or (self._bounds.preemptions is not None and bounded.is_exhausted)
        self._save(reduced, bounded, is_over=is_over or failed is not None)
        if failed is None and not reduced.is_exhausted:
            self._stage = "samples"
            sampled = Sampled(self._director, self._bounds.samples, self._bounds.seed)
            failed = self._first_failing(sampled.runs())
        bound = self._bound(reduced, bounded)
        if failed is None and not self._followed and not self._unfollowed and self._schedules:
            raise ExploreError(_NOTHING)
        if failed is not None and not self._followed and failed.failure and failed.failure.kind == "check":
            self._notes.append(_NOTHING)
        if failed is None:
            # schedules with few preemptions are among the distinct ones
            self._schedules = reduced.finished if reduced.is_exhausted else self._schedules
            return self._result(None, exhaustive=not bound, bound=bound)
        self._stage = "shrink"
        return self._result(self._report.of(failed), exhaustive=False, bound="the first failure ends it")

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
        runs, before = reduced.runs(), self._schedules
        yield from itertools.islice(runs, max(0, min(left, FIRST_SCHEDULES - reduced.finished)))
        left -= self._schedules - before
        if not reduced.is_exhausted and left > 0:
            before = self._schedules
            for run in itertools.islice(bounded.runs(), max(0, min(left // 2, MOST_FEW - self._few))):
                self._few += 1
                yield run
            yield from itertools.islice(runs, left - (self._schedules - before))

    def _bound(self, reduced: Dpor, bounded: Bounded) -> str:
        bounds, exhausted = self._bounds, reduced.is_exhausted
        if interruption.number and not exhausted:
            return f"it was interrupted by {signal.Signals(interruption.number).name}"
        if self._unfollowed:
            return "some calls could not be explored; see the notes"
        if bounds.preemptions is not None and bounded.is_exhausted:
            return f"interleavings with more than {count(bounds.preemptions, 'preemption')} were skipped"
        if exhausted:
            return self._crash_bound
        said = f"it stopped after {count(bounds.schedules, 'interleaving')}"
        if bounded.complete >= 0:
            said += f", which are all with at most {count(bounded.complete, 'preemption')} and others,"
        return said + (f" and {bounds.samples} random ones (seed {bounds.seed})" if bounds.samples else "")

    def _first_failing(self, runs: Iterator[ScheduleRun]) -> ScheduleRun | None:
        with contextlib.suppress(Interrupted):
            interruption.check()
            for run in () if interruption.number else runs:
                self._schedules += 1
                self._note(run)
                self._crash_bound = self._crash_bound or run.bound
                if run.failure is not None:
                    return run
        return None

    def _note(self, run: ScheduleRun) -> None:
        self._unfollowed = run.unfollowed | self._unfollowed
        seen = (move for move in run.trace.moves if EVERYTHING not in move.footprint.writes)
        self._followed.update((move.name, move.where) for move in seen)

    def _progress(self) -> Progress:
        bounds, seconds = self._bounds, time.monotonic() - self._began
        most = bounds.samples if self._stage == "samples" else bounds.schedules
        return Progress(self._schedules, self._director.runs, seconds, most, self._stage)

    def _load(self, *searches: Dpor | Bounded) -> None:
        """Continue a saved search."""
        if self._watch.file is None:
            return
        identity = saved_search.digest(self._director.scenario, self._bounds)
        lifetimes = self._director.scenario.lifetimes
        found = saved_search.load(self._watch.file, identity, searches, lifetimes=lifetimes)
        if found.get("lifetimes") and not lifetimes:
            self._director.follow_lifetimes()
        self._schedules = found.get("schedules", 0)
        self._few = found.get("few", 0)
        self._notes = found.get("notes", [])
        self._crash_bound = found.get("crash_bound", "")
        self._assumed = set(found.get("assumed", []))
        self._unfollowed = {(what, place): text for what, place, text in found.get("unfollowed", [])}
        self._followed = {(name, where) for name, where in found.get("followed", [])}

    def _save(self, *searches: Dpor | Bounded, is_over: bool) -> None:
        """Save a search that is not over, so that the next one continues it."""
        file = self._watch.file
        if file is None:
            return
        if is_over:
            file.unlink(missing_ok=True)
            return
        counts = {
            "lifetimes": self._director.scenario.lifetimes,
            "schedules": self._schedules,
            "few": self._few,
            "notes": self._notes,
            "crash_bound": self._crash_bound,
            "assumed": sorted(self._assumed | self._director.endless),
            "unfollowed": [[*key, text] for key, text in self._unfollowed.items()],
            "followed": sorted(self._followed),
        }
        identity = saved_search.digest(self._director.scenario, self._bounds)
        saved_search.save(file, identity, searches, counts)

    def replay(self, token: schedule_tokens.ScheduleToken) -> Result:
        """Run one schedule."""
        run = self._director.replay(token.schedule)
        self._schedules += 1
        self._note(run)
        if schedule_tokens.digest(run.trace.moves) != token.digest:
            raise Nondeterministic("the token does not match: the code or the scenario has changed")
        failing = (
            None
            if run.failure is None
            else self._report.as_found(run, is_least=False)._replace(is_replay=True)
        )
        return self._result(failing, exhaustive=False, bound="one schedule was replayed")

    def _result(self, failing: FailingSchedule | None, *, exhaustive: bool, bound: str) -> Result:
        unfollowed = tuple(self._unfollowed.values())
        covered = Coverage(len(self._followed), len(unfollowed), unfollowed)
        notes = (*unfollowed, *self._notes)
        loops = tuple(sorted(self._assumed | self._director.endless)) if failing is None else ()
        return Result(
            failing is None,
            self._schedules,
            exhaustive,
            failing,
            0.0,
            notes,
            bound,
            coverage=covered,
            assumed=tuple(f"the retry loop {loop} ends only if another process moves" for loop in loops),
        )
