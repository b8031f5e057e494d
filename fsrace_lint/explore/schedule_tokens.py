"""A schedule as a short text, which a report prints and `--replay` accepts.

    fsr1.2posix.a3ba~1B.5f2c

This means: two processes on a POSIX filesystem. Process 0 makes three calls, and process 1 makes one. Process
0 makes one call that gets its first stale answer, and process 1 is killed instead of its next call; "b+"
would start it again. `a!` is a call of process 0 in a retry loop, although the loop waits for other processes
that can continue. The last part is four digits of a digest of the calls, which detects that the code has
changed.

With faults, the second part names them, as in `2posix%ENOSPC%EIO`. Then `a%2` means that the next call of
process 0 gets the second fault, EIO.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.moves import FAULT_BASE, IMPATIENT, KILLED, RESTARTED, TRUTH, Choice
from fsrace_lint.explore.scenario import CRASHES, FILESYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.explore.moves import Move, Schedule
    from fsrace_lint.explore.scenario import Scenario

_VERSION: Final = "fsr1"
_OPTIONS: Final = {"same": "same_pids", "lives": "lifetimes"}
_SIGNS: Final = {RESTARTED: "+", IMPATIENT: "!"}
_MOST_MOVES: Final = 100_000
_PART: Final = re.compile(r"([a-z])(?:([~%])(\d+)|(\d+)|([+!]))?|([A-Z])")


def _one_of(words: Iterable[str]) -> str:
    """Return a pattern that prefers the longest word."""
    return "|".join(sorted(words, key=len, reverse=True))


_TOKEN: Final = re.compile(
    rf"{_VERSION}\.(?P<processes>\d+)(?P<filesystem>(?:{_one_of(FILESYSTEMS)})(?:,(?:{_one_of(FILESYSTEMS)}))*)"
    rf"(?:-(?P<crash>{_one_of(CRASHES)}))?(?:-nodes(?P<nodes>\d+))?"
    rf"(?P<options>(?:-(?:{_one_of(_OPTIONS)}))*)(?P<faults>(?:%[A-Z]+)*)"
    r"\.(?P<body>[A-Za-z0-9~%+!]*)\.(?P<digest>[0-9a-f]{4})"
)


class ScheduleToken(NamedTuple):
    """The contents of a token.

    Attributes:
        processes: The number of processes.
        filesystem: The filesystem model.
        crash: The crash model.
        nodes: The number of nodes.
        options: The other parts of the scenario that a replay needs: names of its fields that are true.
        schedule: The moves.
        digest: The digest of the calls.
        faults: The faults that processes can get.
    """

    processes: int
    filesystem: str
    crash: str
    nodes: int
    options: tuple[str, ...]
    schedule: Schedule
    digest: str
    faults: tuple[str, ...] = ()

    def applied_to(self, scenario: Scenario) -> Scenario:
        """Return the scenario with the processes and the models of this token."""
        restarted = [choice.rank for choice in self.schedule if choice.given == RESTARTED]
        return scenario._replace(
            processes=self.processes,
            filesystem=self.filesystem,
            crash=self.crash,
            nodes=self.nodes,
            kills=max(1, sum(choice.given == KILLED for choice in self.schedule)),
            restarts=max(map(restarted.count, restarted), default=0),
            same_pids="same_pids" in self.options,
            lifetimes="lifetimes" in self.options,
            faults=self.faults,
        )


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
        elif choice.given in _SIGNS:
            parts.append(f"{letter}{_SIGNS[choice.given]}")
        elif choice.fault is not None:
            parts.append(f"{letter}%{choice.fault + 1}")
        elif choice.given != TRUTH:
            parts.append(f"{letter}~{choice.given}")
        else:
            count = 1
            while at < len(moves) and moves[at].choice == choice:
                count, at = count + 1, at + 1
            parts.append(letter + (str(count) if count > 1 else ""))
    told = [] if scenario.crash == "none" else [scenario.crash]
    told += [] if scenario.nodes == 1 else [f"nodes{scenario.nodes}"]
    told += [short for short, name in _OPTIONS.items() if getattr(scenario, name)]
    model = "-".join([f"{scenario.processes}{scenario.filesystem}", *told])
    model += "".join(f"%{fault}" for fault in scenario.faults)
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
    found = _TOKEN.fullmatch(text.strip())
    if found is None:
        raise ExploreError(f"{text!r} is not a schedule token; a token looks like fsr1.2posix.ab2a.e797")
    body, crash = found["body"], found["crash"] or "none"
    options = tuple(_OPTIONS[each] for each in found["options"].split("-")[1:])
    schedule: list[Choice] = []
    at = 0
    while at < len(body):
        part = _PART.match(body, at)
        if part is None:
            raise ExploreError(f"{text!r} is not a schedule token: {body[at:]!r} has no meaning")
        at = part.end()
        letter, kind, number, count, sign, killed = part.groups()
        if killed:
            schedule.append(Choice(ord(killed) - ord("A"), KILLED))
        elif sign:
            given = next(given for given, meant in _SIGNS.items() if meant == sign)
            schedule.append(Choice(ord(letter) - ord("a"), given))
        elif kind:
            given = int(number) if kind == "~" else FAULT_BASE - int(number) + 1
            schedule.append(Choice(ord(letter) - ord("a"), given))
        else:
            if int(count or 1) > _MOST_MOVES:
                raise ExploreError(f"{text!r} is not a schedule token: {count} calls are too many")
            schedule += [Choice(ord(letter) - ord("a"))] * int(count or 1)
    return ScheduleToken(
        int(found["processes"]),
        found["filesystem"],
        crash,
        int(found["nodes"] or 1),
        options,
        tuple(schedule),
        found["digest"],
        tuple(found["faults"].split("%")[1:]),
    )


def digest(moves: Sequence[Move]) -> str:
    """Return four digits that identify these calls."""
    calls = "\n".join(f"{move.choice.rank} {move.name}" for move in moves)
    return hashlib.sha256(calls.encode()).hexdigest()[:4]
