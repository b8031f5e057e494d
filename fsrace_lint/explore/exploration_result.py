"""The result of an exploration, as data and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fsrace_lint.explore.moves import Move


class FailingSchedule(NamedTuple):
    """A schedule that fails.

    Attributes:
        kind: "exception", "check", "disagreement", "deadlock", "crash", "hang", or "exit".
        text: The failure, in one line.
        details: A traceback, the results, or the stack of every process.
        moves: The calls, in order.
        token: The token that replays this schedule.
        reasons: Which call of one process ran between two calls of another one.
        switches: The number of context switches between processes.
        is_least: Whether no schedule with fewer context switches fails in the same way.
        timeline: The calls as a table with one column for each process.
        is_replay: Whether `replay` requested this schedule.
        is_confirmed: Whether a second run of this schedule failed too; not if a signal prevented it.
        fails_alone: Whether the process fails whatever the other processes do, so that it is not a race.
    """

    kind: str
    text: str
    details: str
    moves: tuple[Move, ...]
    token: str
    reasons: tuple[str, ...]
    switches: int
    is_least: bool
    timeline: str
    is_replay: bool = False
    is_confirmed: bool = True
    fails_alone: bool = False


class Result(NamedTuple):
    """The result of an exploration.

    Attributes:
        ok: Whether every schedule passed.
        schedules: The number of schedules that were run.
        exhaustive: Whether every distinct interleaving was run, under the filesystem model.
        failure: The failing schedule, or None.
        seconds: The duration.
        notes: Calls that the explorer does not control.
        bound: Why the search ended, if it is not exhaustive.
        runs: The number of runs, including incomplete runs and runs that minimize the failure.
        interrupted: The number of the signal that stopped the exploration, or 0.
    """

    ok: bool
    schedules: int
    exhaustive: bool
    failure: FailingSchedule | None
    seconds: float
    notes: tuple[str, ...]
    bound: str
    runs: int = 0
    interrupted: int = 0

    def __str__(self) -> str:
        return report(self)

    def assert_ok(self) -> None:
        """Raise an exception if a schedule failed.

        Raises:
            AssertionError: A schedule failed. The message is the report.
        """
        if not self.ok:
            raise AssertionError(report(self))


def report(result: Result) -> str:
    """Format a result as the command line and a failing `assert` show it.

    Args:
        result: The result of an exploration.

    Returns:
        Multiple lines of text.
    """
    count = f"{result.schedules} interleaving{'s' if result.schedules != 1 else ''}"
    if result.failure is not None:
        lines = _failing(result.failure, count)
    elif result.exhaustive:
        lines = [f"OK: {result.schedules} of {result.schedules} distinct interleavings pass."]
        if result.schedules == 1:
            lines = ["OK: the only distinct interleaving passes."]
    else:
        lines = [f"No failure in {count}, but the search is incomplete: {result.bound}."]
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def _failing(failure: FailingSchedule, count: str) -> list[str]:
    is_by_check = failure.kind in {"check", "crash"}
    lines = [f"The check failed: {failure.text}" if is_by_check else failure.text, ""]
    if failure.moves:
        lines += [failure.timeline, ""]
    lines += [f"why: {reason}" for reason in failure.reasons]
    if failure.details and (failure.kind == "deadlock" or failure.fails_alone):
        lines += [failure.details.rstrip(), ""]
    switches = f"{failure.switches} context switch{'es' if failure.switches != 1 else ''}"
    if not failure.is_least and not failure.is_replay:
        switches += " (may not be the minimum)"
    again = "a second run of it failed too" if failure.is_confirmed else "it was not run again"
    end = f"Found after {count}. The schedule above has {switches}; {again}."
    if failure.is_replay:
        end = f"The failure was reproduced by a replay of one interleaving, with {switches}."
    return [*lines, end, f"replay: {failure.token}"]
