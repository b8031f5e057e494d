"""A run as a table: one column for each process, one row for each call."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from fsrace_lint.explore import code_places
from fsrace_lint.explore.moves import IMPATIENT, KILLED, RESTARTED, TRUTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.explore.moves import Move

NARROWEST: Final = 24
"""The minimum width of a column, even if the table is then wider than the terminal."""
_GAP: Final = "   "
_MARGIN: Final = 6
LONGEST_ROUND = 24
"""The maximum number of calls in one round of a loop that is shortened."""
MANY_ROUNDS = 12
"""The number of equal rounds from which a loop is shortened."""


def draw(moves: Sequence[Move], processes: int, width: int = 0) -> str:
    """Return the table of the moves of a run.

    Args:
        moves: The moves.
        processes: The number of columns.
        width: The width of the terminal; longer texts continue in the next line. 0 for no limit.

    Returns:
        Multiple lines of text.
    """
    texts = [told(move) for move in moves]
    places = [plain(code_places.shown(move.where)) for move in moves]
    column = max(len(text) for text in [*texts, "process 0"])
    if width:
        left = width - _MARGIN - max(map(len, [*places, "where"]))
        column = min(column, max(NARROWEST, left // processes - len(_GAP)))
    head = _GAP.join(f"process {rank}".ljust(column) for rank in range(processes))
    lines = [f"{'':{_MARGIN}}{head}{_GAP}where".rstrip()]
    left_out = _repeated(moves)
    for number, (move, text, place) in enumerate(zip(moves, texts, places, strict=True), 1):
        if number - 1 in left_out:
            if number - 2 not in left_out:
                lines.append(f"{'':{_MARGIN}}... process {move.choice.rank} repeats the calls above")
            continue
        parts = _wrapped(text, column)
        for label, part, where in zip_longest([str(number)], parts, [place], fillvalue=""):
            cells = [part if rank == move.choice.rank else "" for rank in range(processes)]
            row = _GAP.join(cell.ljust(column) for cell in cells)
            lines.append(f"{label:>{_MARGIN - 2}}  {row}{_GAP}{where}".rstrip())
    return "\n".join(lines)


def _repeated(moves: Sequence[Move]) -> set[int]:
    """Return the indices of calls to leave out: all but the first two rounds and the last one of a loop."""
    calls = [(move.choice.rank, move.name, "" if move.name == "sleep" else move.target) for move in moves]
    found: set[int] = set()
    at = 0
    while at < len(calls):
        for size in range(1, LONGEST_ROUND + 1):
            end = at
            while calls[end : end + size] == calls[at : at + size] and end + size <= len(calls):
                end += size
            if end - at >= MANY_ROUNDS * size and len({rank for rank, _, _ in calls[at : at + size]}) == 1:
                found.update(range(at + 2 * size, end - size))
                at = end - 1
                break
        at += 1
    return found


def _wrapped(text: str, width: int) -> list[str]:
    """Split a text at spaces and slashes; continued lines are indented."""
    parts = []
    indent = ""
    while len(indent + text) > width:
        most = width - len(indent)
        cut = max(text.rfind(" ", 1, most), text.rfind("/", 1, most)) + 1 or most
        parts.append((indent + text[:cut]).rstrip())
        text = text[cut:]
        indent = "  "
    return [*parts, indent + text]


def told(move: Move) -> str:
    """Return a move in words: the call, its subject, and its result."""
    return plain(_words(move))


def plain(text: str) -> str:
    """Escape characters that cannot be printed."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _words(move: Move) -> str:
    if move.choice.given == KILLED:
        return f"KILLED {move.target}"
    if move.choice.given == RESTARTED:
        return f"STARTED AGAIN {move.target}"
    words = f"{move.name} {move.target}".rstrip()
    if move.result not in ("", "done"):
        words += f" -> {move.result}"
    if move.choice.given == IMPATIENT:
        return f"{words} (does not wait)"
    return words + (" (stale)" if move.choice.given > TRUTH else "")


def faults(moves: Sequence[Move]) -> list[str]:
    """Say which calls got an injected error."""
    return [
        f"step {number} of process {move.choice.rank} ({_words(move)}) got an error that `prove` injected"
        for number, move in enumerate(moves, 1)
        if move.choice.fault is not None
    ]


def impatience(moves: Sequence[Move]) -> list[str]:
    """Say from which step on a process in a retry loop no longer waits for the others."""
    return [
        f"from step {number} on, process {move.choice.rank} repeats its calls although another process could"
        " continue, as if that one was slow; its timeout or retry limit ends the loop"
        for number, move in enumerate(moves, 1)
        if move.choice.given == IMPATIENT
    ][:1]
