"""What an exploration found, as data and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fsrace_lint.explore.moves import Move


class FailingSchedule(NamedTuple):
    """A schedule that fails.

    Attributes:
        kind: "exception", "check", "disagreement", "deadlock", "crash" or "hang".
        text: What is wrong, in a line.
        details: A traceback, the results, or where everybody stands.
        moves: What was done, in order.
        token: What replays exactly this.
        reasons: What came in between.
        switches: How often the schedule goes from one process to another.
        is_least: Whether no schedule with fewer switches fails like this.
        timeline: All of it drawn.
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


class Result(NamedTuple):
    """What an exploration found.

    Attributes:
        ok: Whether no schedule failed.
        schedules: How many were run.
        exhaustive: Whether all were run that can differ, under the model.
        failure: The failing schedule, or None.
        seconds: How long it took.
        notes: What could not be followed.
        bound: What ended the search, where it was not exhaustive.
        runs: How many runs that took, with those that were given up, and those that made the failure simpler.
    """

    ok: bool
    schedules: int
    exhaustive: bool
    failure: FailingSchedule | None
    seconds: float
    notes: tuple[str, ...]
    bound: str
    runs: int = 0

    def __str__(self) -> str:
        return report(self)

    def assert_ok(self) -> None:
        """Do nothing where no schedule failed.

        Raises:
            AssertionError: One did; its text is the report.
        """
        if not self.ok:
            raise AssertionError(report(self))


def report(result: Result) -> str:
    """Tell what was found, as the command line and a failing `assert` show it.

    Args:
        result: What was found.

    Returns:
        Lines of text.
    """
    count = f"{result.schedules} schedule{'s' if result.schedules != 1 else ''}"
    if result.failure is not None:
        lines = _failing(result.failure, count)
    elif result.exhaustive:
        lines = [f"No schedule fails: {count}, which are all that can differ."]
    else:
        lines = [f"No schedule failed in {count}, which are not all: {result.bound}."]
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def _failing(failure: FailingSchedule, count: str) -> list[str]:
    lines = [failure.text, "", failure.timeline, "", *(f"why: {reason}" for reason in failure.reasons)]
    if failure.kind == "deadlock":
        lines += [failure.details.rstrip(), ""]
    few = "the fewest" if failure.is_least else "fewer were not found"
    changes = f"{failure.switches} switch{'es' if failure.switches != 1 else ''} between processes ({few})"
    return [*lines, f"{changes}; found in {count}, replayed.", f"replay: {failure.token}"]
