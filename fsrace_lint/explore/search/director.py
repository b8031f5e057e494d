"""Starts the runs of one scenario, each from the same state, and replays schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.errors import Nondeterministic
from fsrace_lint.explore.moves import Choice
from fsrace_lint.explore.running import jobs
from fsrace_lint.explore.running.interruption import interruption
from fsrace_lint.explore.running.run import ScheduleRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.explore.moves import Move
    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.running.stage import Stage
    from fsrace_lint.explore.scenario import Scenario


class Director:
    """Starts runs.

    Args:
        scenario: The scenario to run.
        stage: The scratch directory.
        gate: The gate where the calls of the processes stop.

    Attributes:
        runs: The number of runs that were started.
        on_run: Is called before each run.
    """

    def __init__(self, scenario: Scenario, stage: Stage, gate: Gate) -> None:
        self.scenario = scenario
        self.runs = 0
        self.on_run: Callable[[], object] = lambda: None
        self._stage = stage
        self._gate = gate
        self._next: list[jobs.Process] = []

    def open(self) -> ScheduleRun:
        """Start a run, which the caller must close; the processes of the next run prepare meanwhile."""
        self.on_run()
        self.runs += 1
        processes, self._next = self._next or self._started(), []
        run = ScheduleRun(self.scenario, self._stage, processes)
        self._next = self._started()
        return run

    def _started(self) -> list[jobs.Process]:
        return [jobs.start(self.scenario, rank, self._gate) for rank in range(self.scenario.processes)]

    def play(self, choose: Callable[[ScheduleRun], Choice | None]) -> ScheduleRun:
        """Execute a run from its start to its end.

        Args:
            choose: Returns the next choice, or None to abandon the run.

        Returns:
            The run; it is judged if it reached its end, and its processes have ended.

        Raises:
            Interrupted: A signal has arrived.
        """
        interruption.check()
        run = self.open()
        try:
            while run.failure is None and run.ready():
                interruption.check()
                choice = choose(run)
                if choice is None:
                    return run
                run.move(choice)
            run.finish()
        finally:
            run.close()
        return run

    def replay(self, schedule: Sequence[Choice]) -> ScheduleRun:
        """Make the moves of a schedule, and then continue without context switches.

        Args:
            schedule: The moves.

        Returns:
            The run, judged.

        Raises:
            Nondeterministic: A process cannot make a move of the schedule.
        """
        left = list(reversed(schedule))

        def choose(run: ScheduleRun) -> Choice:
            if not left:
                return onward(run)
            choice = left.pop()
            if choice.rank not in run.ready() or choice.given not in run.given(choice.rank):
                raise Nondeterministic(_unlike(run, choice))
            return choice

        return self.play(choose)


def onward(run: ScheduleRun, avoided: Sequence[int] = ()) -> Choice:
    """Choose the process that moved last, or else the first that can move."""
    ready = [rank for rank in run.ready() if rank not in avoided]
    last = run.trace.moves[-1].choice.rank if run.trace.moves else -1
    return Choice(last if last in ready else ready[0])


def _unlike(run: ScheduleRun, choice: Choice) -> str:
    number = len(run.trace.moves) + 1
    return (
        f"at step {number}, process {choice.rank} cannot repeat its call: the code or the scenario has"
        " changed, or is nondeterministic"
    )


def same_move(before: Move, again: Move) -> None:
    """Reject a scenario that behaves differently in the same situation.

    Args:
        before: The first move.
        again: The repeated move.

    Raises:
        Nondeterministic: The moves differ.
    """
    if (before.name, before.target) != (again.name, again.target):
        raise Nondeterministic(
            f"process {again.choice.rank} called {again.name} {again.target}, but {before.name}"
            f" {before.target} in the same schedule before: its code must depend on nothing but the results"
            " of its calls"
        )
