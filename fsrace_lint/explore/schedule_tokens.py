"""A schedule as a short text, which a report prints and `--replay` accepts.

    fsr1.2posix.a3ba~1B.5f2c

This means: two processes on a POSIX filesystem. Process 0 makes three calls, and process 1 makes one. Process
0 makes one call that gets its first stale answer, and process 1 is killed instead of its next call. `a!` is a
call of process 0 in a retry loop, although the loop waits for other processes that can continue. The last
part is four digits of a digest of the calls, which detects that the code has changed.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.moves import IMPATIENT, KILLED, TRUTH, Choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.explore.moves import Move, Schedule
    from fsrace_lint.explore.scenario import Scenario

_VERSION: Final = "fsr1"
_MOST_MOVES: Final = 100_000
_PART: Final = re.compile(r"([a-z])(?:~(\d+)|(\d+)|(!))?|([A-Z])")


class ScheduleToken(NamedTuple):
    """The contents of a token.

    Attributes:
        processes: The number of processes.
        filesystem: The filesystem model.
        crash: The crash model.
        schedule: The moves.
        digest: The digest of the calls.
    """

    processes: int
    filesystem: str
    crash: str
    schedule: Schedule
    digest: str


def write(scenario: Scenario, moves: Sequence[Move]) -> str:
    """Return the token of a run.

    Args:
        scenario: The scenario.
        moves: The moves of the run.

    Returns:
        The token.
    """
    parts: list[str] = []
    at = 0
    while at < len(moves):
        choice = moves[at].choice
        letter = chr(ord("a") + choice.rank)
        at += 1
        if choice.given == KILLED:
            parts.append(letter.upper())
        elif choice.given == IMPATIENT:
            parts.append(f"{letter}!")
        elif choice.given != TRUTH:
            parts.append(f"{letter}~{choice.given}")
        else:
            count = 1
            while at < len(moves) and moves[at].choice == choice:
                count, at = count + 1, at + 1
            parts.append(letter + (str(count) if count > 1 else ""))
    model = f"{scenario.processes}{scenario.filesystem}" + (
        "" if scenario.crash == "none" else f"-{scenario.crash}"
    )
    return f"{_VERSION}.{model}.{''.join(parts)}.{digest(moves)}"


def read(text: str) -> ScheduleToken:
    """Parse a token.

    Args:
        text: The token as it was printed.

    Returns:
        The contents of the token.

    Raises:
        ExploreError: The text is not a token.
    """
    found = re.fullmatch(
        rf"{_VERSION}\.(\d+)([a-z]+)(?:-([a-z]+))?\.([A-Za-z0-9~!]*)\.([0-9a-f]{{4}})", text.strip()
    )
    if found is None:
        raise ExploreError(f"{text!r} is not a schedule token; a token looks like fsr1.2posix.ab2a.e797")
    processes, filesystem, crash, body, told = found.groups()
    schedule: list[Choice] = []
    at = 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None:
            raise ExploreError(f"{text!r} is not a schedule token: {body[at:]!r} has no meaning")
        at = part.end()
        letter, answer, count, impatient, killed = part.groups()
        if killed:
            schedule.append(Choice(ord(killed) - ord("A"), KILLED))
        elif impatient:
            schedule.append(Choice(ord(letter) - ord("a"), IMPATIENT))
        elif answer:
            schedule.append(Choice(ord(letter) - ord("a"), int(answer)))
        else:
            if int(count or 1) > _MOST_MOVES:
                raise ExploreError(f"{text!r} is not a schedule token: {count} calls are too many")
            schedule += [Choice(ord(letter) - ord("a"))] * int(count or 1)
    return ScheduleToken(int(processes), filesystem, crash or "none", tuple(schedule), told)


def digest(moves: Sequence[Move]) -> str:
    """Return four digits that identify these calls."""
    calls = "\n".join(f"{move.choice.rank} {move.name}" for move in moves)
    return hashlib.sha256(calls.encode()).hexdigest()[:4]
