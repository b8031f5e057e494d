"""The result of an exploration, as data and as text."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore import code_places, timeline
from fsrace_lint.explore.moves import KILLED, TRUTH

if TYPE_CHECKING:
    from fsrace_lint.explore.moves import Move


MOST_NOTES: Final = 12
"""The maximum number of notes in a report."""


class FailingSchedule(NamedTuple):
    """A schedule that fails.

    Attributes:
        kind: "exception", "check", "disagreement", "deadlock", "livelock", "crash", "hang", or
            "exit".
        text: The failure, in one line.
        details: A traceback, the results, or the stack of every process.
        moves: The calls, in order.
        token: The token that replays this schedule.
        reasons: Which call of one process ran between two calls of another one.
        steps: The numbers of the steps that each reason names.
        switches: The number of context switches between processes.
        is_least: Whether no schedule with fewer context switches fails in the same way.
        timeline: The calls as a table with one column for each process.
        shown: The numbers of the steps whose callers the report shows.
        output: The last lines that each process has printed.
        processes: The number of processes.
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
    steps: tuple[tuple[int, ...], ...] = ()
    shown: tuple[int, ...] = ()
    output: tuple[str, ...] = ()
    processes: int = 0
    is_replay: bool = False
    is_confirmed: bool = True
    fails_alone: bool = False


class Coverage(NamedTuple):
    """What an exploration followed, over all of its schedules.

    Attributes:
        followed: The number of distinct calls that were controlled: each name and line counts once.
        unfollowed: The number of distinct calls and changes that were not controlled.
        places: Descriptions of those.
    """

    followed: int = 0
    unfollowed: int = 0
    places: tuple[str, ...] = ()


class Result(NamedTuple):
    """The result of an exploration.

    Attributes:
        ok: Whether every schedule passed.
        schedules: The number of schedules that were run.
        exhaustive: Whether every distinct interleaving was run, under the filesystem model and what is
            `assumed`.
        failure: The failing schedule, or None.
        seconds: The duration.
        notes: Calls that the explorer does not control.
        bound: Why the search ended, if it is not exhaustive.
        runs: The number of runs, including incomplete runs and runs that minimize the failure.
        coverage: What was controlled, and what was not.
        interrupted: The number of the signal that stopped the exploration, or 0.
        assumed: Which retry loops count as endless, because many equal rounds have not ended them.
    """

    ok: bool
    schedules: int
    exhaustive: bool
    failure: FailingSchedule | None
    seconds: float
    notes: tuple[str, ...]
    bound: str
    runs: int = 0
    coverage: Coverage = Coverage()
    interrupted: int = 0
    assumed: tuple[str, ...] = ()

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
        condition = ", under the assumption below" if result.assumed else ""
        lines = [f"OK: {result.schedules} of {result.schedules} distinct interleavings pass{condition}."]
        if result.schedules == 1:
            lines = [f"OK: the only distinct interleaving passes{condition}."]
    else:
        lines = [f"No failure in {count}, but the search is incomplete: {result.bound}."]
    # the token of a failure stays the last line
    lines.insert(len(lines) - (result.failure is not None), _covered(result.coverage))
    lines += [f"assumed: {each}" for each in result.assumed]
    lines += [f"note: {note}" for note in result.notes[:MOST_NOTES]]
    if len(result.notes) > MOST_NOTES:
        lines.append(f"note: {len(result.notes) - MOST_NOTES} more in the attribute `notes` of the result")
    return "\n".join(lines)


def _covered(coverage: Coverage) -> str:
    calls = "1 call" if coverage.followed == 1 else f"{coverage.followed} calls"
    return f"coverage: {calls} followed, {coverage.unfollowed} not (each name and line counts once)"


def _failing(failure: FailingSchedule, count: str) -> list[str]:
    is_by_check = failure.kind in {"check", "crash"}
    lines = [f"The check failed: {failure.text}" if is_by_check else failure.text, ""]
    if failure.moves:
        lines += [failure.timeline, ""]
    lines += [f"why: {timeline.plain(reason)}" for reason in failure.reasons]
    lines += _called_from(failure)
    lines += [""] if lines[-1] else []
    lines += _evidence(failure)
    switches = f"{failure.switches} context switch{'es' if failure.switches != 1 else ''}"
    if not failure.is_least and not failure.is_replay:
        switches += " (may not be the minimum)"
    again = "a second run of it failed too" if failure.is_confirmed else "it was not run again"
    end = f"Found after {count}. The schedule above has {switches}; {again}."
    if failure.is_replay:
        end = f"The failure was reproduced by a replay of one interleaving, with {switches}."
    return [*lines, end, f"replay: {failure.token}"]


def _called_from(failure: FailingSchedule) -> list[str]:
    """Say how the program came to the steps that matter; steps with the same callers share a line."""
    steps: dict[str, list[str]] = {}
    for number in failure.shown:
        told = code_places.called_from(failure.moves[number - 1].stack)
        if told:
            steps.setdefault(timeline.plain(told), []).append(str(number))
    return [
        f"step{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {told}"
        for told, numbers in steps.items()
    ]


def _evidence(failure: FailingSchedule) -> list[str]:
    """Return the traceback or the stacks, and what the processes have printed."""
    lines: list[str] = []
    details = failure.details.rstrip()
    if details and failure.kind not in {"disagreement", "exit"}:
        lines += [details, ""]
    for rank, text in enumerate(failure.output):
        if text:
            lines += [f"output of process {rank}:", *(f"  {line}" for line in text.splitlines()), ""]
    return lines


def as_data(result: Result) -> dict[str, object]:
    """Return a result as plain data, for JSON.

    Args:
        result: The result of an exploration.

    Returns:
        The fields of the result; the calls of a failing schedule are in `failure.steps`.
    """
    failure = None if result.failure is None else _failure_as_data(result.failure)
    return {
        **result._asdict(),
        "notes": list(result.notes),
        "assumed": list(result.assumed),
        "failure": failure,
    }


def _failure_as_data(failure: FailingSchedule) -> dict[str, object]:
    reasons = [
        {"text": text, "steps": list(steps)}
        for text, steps in zip_longest(failure.reasons, failure.steps, fillvalue=())
    ]
    return {
        "kind": failure.kind,
        "text": failure.text,
        "details": failure.details,
        "token": failure.token,
        "reasons": reasons,
        "switches": failure.switches,
        "is_least": failure.is_least,
        "is_replay": failure.is_replay,
        "fails_alone": failure.fails_alone,
        "processes": failure.processes,
        "output": list(failure.output),
        "steps": [_step_as_data(number, move) for number, move in enumerate(failure.moves, 1)],
    }


def _step_as_data(number: int, move: Move) -> dict[str, object]:
    place = code_places.place_of(move.stack)
    frames = [] if place is None else [place, *code_places.callers_of(move.stack)]
    return {
        "number": number,
        "process": move.choice.rank,
        "call": move.name,
        "target": move.target,
        "result": "" if move.result == "done" else move.result,
        "stale": move.choice.given > TRUTH,
        "killed": move.choice.given == KILLED,
        "clock": move.now,
        "where": code_places.shown(move.where),
        "stack": [{"file": file, "line": line, "function": name} for file, line, name in frames],
    }
