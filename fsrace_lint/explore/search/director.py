"""Starts runs of one scenario, each from the same state, and makes the same moves again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.errors import Nondeterministic
from fsrace_lint.explore.moves import Choice
from fsrace_lint.explore.running import jobs
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
        scenario: What to run.
        stage: Where.
        gate: Where the calls of its processes stop.

    Attributes:
        runs: How many were started.
    """

    def __init__(self, scenario: Scenario, stage: Stage, gate: Gate) -> None:
        self.scenario = scenario
        self.runs = 0
        self._stage = stage
        self._gate = gate
        self._next: list[jobs.Process] = []

    def open(self) -> ScheduleRun:
        """Start a run; it is to be closed. The processes of the next one get ready meanwhile."""
        self.runs += 1
        processes, self._next = self._next or self._started(), []
        run = ScheduleRun(self.scenario, self._stage, processes)
        self._next = self._started()
        return run

    def _started(self) -> list[jobs.Process]:
        return [jobs.start(self.scenario, rank, self._gate) for rank in range(self.scenario.processes)]

    def play(self, choose: Callable[[ScheduleRun], Choice | None]) -> ScheduleRun:
        """Make a run from its start to its end.

        Args:
            choose: Says what is next, or None where the run is not to be finished.

        Returns:
            The run, judged where it came to its end; its processes are no more.
        """
        run = self.open()
        try:
            while run.failure is None and run.ready():
                choice = choose(run)
                if choice is None:
                    return run
                run.move(choice)
            run.finish()
        finally:
            run.close()
        return run

    def replay(self, schedule: Sequence[Choice]) -> ScheduleRun:
        """Make the moves of a schedule, and then go on without switching.

        Args:
            schedule: What to do.

        Returns:
            The run, judged.

        Raises:
            Nondeterministic: The schedule cannot be followed.
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
    """Choose the process that moved last, else the first that can move."""
    ready = [rank for rank in run.ready() if rank not in avoided]
    last = run.trace.moves[-1].choice.rank if run.trace.moves else -1
    return Choice(last if last in ready else ready[0])


def _unlike(run: ScheduleRun, choice: Choice) -> str:
    number = len(run.trace.moves) + 1
    return (
        f"at step {number} process {choice.rank} cannot do what it did: the code or its scenario has changed,"
        " or does not do the same every time"
    )


def same_move(before: Move, again: Move) -> None:
    """Refuse a scenario that does something else in the same situation.

    Args:
        before: What was done.
        again: What was done the next time.

    Raises:
        Nondeterministic: They differ.
    """
    if (before.name, before.target) != (again.name, again.target):
        raise Nondeterministic(
            f"process {again.choice.rank} made {again.name} {again.target}, where it made {before.name}"
            f" {before.target} in the same schedule: what it does must depend on nothing but its calls"
        )
