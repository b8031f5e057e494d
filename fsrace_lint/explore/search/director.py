"""Starts the runs of one scenario, each from the same state, and replays schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.errors import Nondeterministic
from fsrace_lint.explore.identity import identity
from fsrace_lint.explore.running import jobs
from fsrace_lint.explore.running.interruption import interruption
from fsrace_lint.explore.running.run import ScheduleRun
from fsrace_lint.explore.running.tracing import Tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.explore.moves import Choice, Move
    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.running.retry_detector import Loop
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
        self._endless: dict[Loop, str] = {}

    def open(self, tracing: Tracing | None = None, *, is_replay: bool = False) -> ScheduleRun:
        """Start a run, which the caller must close; the processes of the next run prepare meanwhile.

        Args:
            tracing: Collects stacks and output, which costs time.
            is_replay: Whether the run knows nothing of other runs, so that it is the same in every search.
        """
        self.on_run()
        self.runs += 1
        processes, self._next = self._next or self._started(), []
        endless: dict[Loop, str] = {} if is_replay else self._endless
        run = ScheduleRun(self.scenario, self._stage, processes, self._start, endless, tracing)
        self._next = self._started()
        return run

    def is_endless(self, loop: Loop) -> bool:
        """Return whether a retry loop counts as endless unless another process moves."""
        return loop in self._endless

    @property
    def endless(self) -> set[str]:
        """The places of the retry loops that count as endless, although more rounds could end them."""
        return set(self._endless.values())

    def _started(self) -> list[jobs.Process]:
        return [self._start(rank) for rank in range(self.scenario.processes)]

    def _start(self, rank: int, life: int = 0) -> jobs.Process:
        return jobs.start(self.scenario, identity(self.scenario, rank, life), self._gate)

    def follow_lifetimes(self) -> None:
        """Make the start and the end of every process a move from now on."""
        self._next = []
        jobs.end_servers()
        self._endless.clear()
        self.scenario = self.scenario._replace(lifetimes=True)

    def play(
        self,
        choose: Callable[[ScheduleRun], Choice | None],
        tracing: Tracing | None = None,
        *,
        is_replay: bool = False,
    ) -> ScheduleRun:
        """Execute a run from its start to its end.

        Args:
            choose: Returns the next choice, or None to abandon the run.
            tracing: Collects stacks and output, which costs time.
            is_replay: Whether the run knows nothing of other runs.

        Returns:
            The run; it is judged if it reached its end, and its processes have ended.

        Raises:
            Interrupted: A signal has arrived.
        """
        interruption.check()
        run = self.open(tracing, is_replay=is_replay)
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

    def replay(self, schedule: Sequence[Choice], patience: float | None = None) -> ScheduleRun:
        """Make the moves of a schedule, and then continue without context switches; collect stacks.

        Args:
            schedule: The moves.
            patience: The maximum number of seconds between two calls; None for that of the scenario.

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
            if not run.allows(choice):
                raise Nondeterministic(_unlike(run, choice))
            return choice

        return self.play(choose, Tracing(self.scenario, self._stage, patience), is_replay=True)


def onward(run: ScheduleRun, avoided: Sequence[int] = ()) -> Choice:
    """Choose the process that moved last, or else the one that has made no move for the longest time."""
    ready = [rank for rank in run.ready() if rank not in avoided]
    last = run.trace.moves[-1].choice.rank if run.trace.moves else -1
    return run.first_choice(last if last in ready else min(ready, key=run.latest_move))


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
