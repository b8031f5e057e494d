"""The failing schedule as it is reported: minimized, run again, and marked if it is not a race."""

from __future__ import annotations

import contextlib
import functools
import shutil
from typing import TYPE_CHECKING, Final

from fsrace_lint.explore import code_places, reasons, schedule_tokens, timeline
from fsrace_lint.explore.errors import ExploreError, Nondeterministic, ScenarioError
from fsrace_lint.explore.exploration_result import FailingSchedule
from fsrace_lint.explore.moves import Choice, switches
from fsrace_lint.explore.running.interruption import Interrupted, interruption
from fsrace_lint.explore.search.director import onward
from fsrace_lint.explore.search.shrink import Shrinker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.explore.code_places import Frame
    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.running.verdict import Failure
    from fsrace_lint.explore.search.director import Director

HANG_PATIENCE: Final = 2.0
"""The number of seconds to wait first when a run that hung is repeated."""
MOST_ALONE: Final = 400
"""The maximum number of calls of a process that runs alone."""
MISTAKES: Final = frozenset(
    (
        *("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "SyntaxError"),
        *("TypeError", "UnboundLocalError"),
    )
)
"""Exceptions that are mistakes in the code of the scenario, if it raises them itself in any interleaving."""


class FailureReport:
    """Makes the report of a failing run.

    Args:
        director: Starts runs.
        shrink_runs: The maximum number of runs that minimize the schedule.
    """

    def __init__(self, director: Director, shrink_runs: int) -> None:
        self._director = director
        self._shrink_runs = shrink_runs
        self._width = shutil.get_terminal_size((0, 0)).columns

    def of(self, failed: ScheduleRun) -> FailingSchedule:
        """Minimize and repeat the failing schedule, or report it as it is if a second signal arrives."""
        with contextlib.suppress(Interrupted):
            interruption.check()
        try:
            return self._shrunk(failed)
        except Interrupted:
            return self.as_found(failed, is_least=False)._replace(is_confirmed=False)

    def _shrunk(self, failed: ScheduleRun) -> FailingSchedule:
        if failed.failure is None:
            raise ExploreError("cannot minimize a run that did not fail")
        self._refuse_mistake(failed)
        shrinker = Shrinker(self._director, failed.failure, self._shrink_runs)
        schedule = failed.schedule()
        if failed.failure.kind == "hang":
            run = self._hung_again(failed)
        else:
            if not interruption.number:
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
            if failure.subject in MISTAKES and self._is_in_scenario(failure.raised[:1]):
                raise ScenarioError(f"{failure.text}\n{failure.details.rstrip()}")
            named = {1: "", 2: " from the other process"}
            others = named.get(self._director.scenario.processes, " from the other processes")
            alone = f"process {failure.rank} fails without interference{others}; not a race"
            return self.as_found(run, is_least=shrinker.is_least)._replace(
                reasons=(alone,), steps=(), fails_alone=True
            )
        return self.as_found(run, is_least=shrinker.is_least)

    def _refuse_mistake(self, failed: ScheduleRun) -> None:
        """Reject a scenario that fails before its first call, or whose check uses an undefined name."""
        failure = failed.failure
        if failure is None:
            return
        details = code_places.relative(failure.details.rstrip())
        made = any(move.choice.rank == failure.rank for move in failed.trace.moves)
        if failure.kind == "exception" and not made:
            raise ScenarioError(f"{failure.text} (before its first filesystem call)\n{details}")
        check = self._director.scenario.check
        if failure.kind in {"check", "crash"} and failure.subject == "NameError":
            file = code_places.file_of(check)
            last = failure.details.rpartition('File "')[2]
            if file and last.startswith(f'{file}"'):
                raise ScenarioError(f"the check is wrong: {failure.text}\n{details}")

    def _is_in_scenario(self, frames: Sequence[Frame]) -> bool:
        file = code_places.file_of(self._director.scenario.function)
        return any(frame[0] == file for frame in frames)

    def _hung_again(self, failed: ScheduleRun) -> ScheduleRun:
        """Repeat a run that hung, and wait less at first: how long a process hangs does not matter."""
        schedule = failed.schedule()
        patience = min(HANG_PATIENCE, self._director.scenario.step_timeout)
        run = self._director.replay(schedule, patience)
        was, now = failed.failure, run.failure
        if was is not None and now is not None and (was.text, schedule) == (now.text, run.schedule()):
            return run
        return self._director.replay(schedule)

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
            is_possible = rank in run.ready() and len(run.trace.moves) < MOST_ALONE
            return run.first_choice(rank) if is_possible else None

        def others_after(calls: int, run: ScheduleRun) -> Choice | None:
            is_next = len(run.trace.moves) < calls or run.ready() == [rank]
            return run.first_choice(rank) if is_next else onward(run, [rank])

        def in_turn(run: ScheduleRun) -> Choice | None:
            return run.first_choice(min(run.ready(), key=lambda each: run.ranks[each].made))

        calls = sum(move.choice.rank == rank for move in failed.trace.moves)
        return (
            fails(alone)
            and fails(in_turn)
            and all(fails(functools.partial(others_after, first)) for first in range(calls))
        )

    def as_found(self, run: ScheduleRun, *, is_least: bool) -> FailingSchedule:
        """Return the report of a run as it is.

        Args:
            run: The failed run.
            is_least: Whether no schedule with fewer context switches fails in the same way.

        Raises:
            ExploreError: The run has not failed.
        """
        failure: Failure | None = run.failure
        if failure is None:
            raise ExploreError("cannot report a run that did not fail")
        scenario, moves = self._director.scenario, tuple(run.trace.moves)
        found = reasons.of_run(run)
        remarks = [*timeline.faults(run.trace.moves), *timeline.impatience(run.trace.moves)]
        return FailingSchedule(
            failure.kind,
            failure.text,
            code_places.relative(failure.details),
            moves,
            schedule_tokens.write(scenario, moves),
            (*remarks, *(reason.text for reason in found)),
            switches(run.schedule()),
            is_least,
            timeline.draw(moves, scenario.processes, self._width),
            (*(() for _ in remarks), *(reason.steps for reason in found)),
            tuple(reasons.of_interest(found, run)),
            () if run.tracing is None else run.tracing.outputs(),
            scenario.processes,
        )
