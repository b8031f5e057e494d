"""A run as a table: one column for each process, one line for each call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fsrace_lint.explore.moves import IMPATIENT, KILLED, TRUTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.explore.moves import Move, Name
    from fsrace_lint.explore.running.run import ScheduleRun

LONGEST = 48
LONGEST_ROUND = 24
"""The maximum number of calls in one round of a loop that is shortened."""
MANY_ROUNDS = 12
"""The number of equal rounds from which a loop is shortened."""


def draw(moves: Sequence[Move], processes: int) -> str:
    """Return the table of the moves of a run.

    Args:
        moves: The moves.
        processes: The number of columns.

    Returns:
        Multiple lines of text.
    """
    texts = [_told(move) for move in moves]
    width = max(len(text) for text in [*texts, "process 0"])
    head = "   ".join(f"process {rank}".ljust(width) for rank in range(processes))
    lines = [f"      {head}   where".rstrip()]
    left_out = _repeated(moves)
    for number, (move, text) in enumerate(zip(moves, texts, strict=True), 1):
        if number - 1 in left_out:
            if number - 2 not in left_out:
                lines.append(f"      ... process {move.choice.rank} repeats the calls above")
            continue
        cells = [text if rank == move.choice.rank else "" for rank in range(processes)]
        row = "   ".join(cell.ljust(width) for cell in cells)
        where = _where(move.where)
        lines.append(f"{number:>4}  {row}   {where}".rstrip())
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


def _told(move: Move) -> str:
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in _words(move))


def _words(move: Move) -> str:
    if move.choice.given == KILLED:
        return f"KILLED {move.target}"
    told = f"{move.name} {move.target}".rstrip()
    if move.result not in ("", "done"):
        told += f" -> {move.result}"
    if len(told) > LONGEST:
        told = f"{move.name} ...{told[len(move.name) + len(told) - LONGEST + 4 :]}"
    if move.choice.given == IMPATIENT:
        return f"{told} (does not wait)"
    return told + (" (stale)" if move.choice.given != TRUTH else "")


def _where(where: str) -> str:
    path, _, line = where.rpartition(":")
    return f"{Path(path).name}:{line}" if path else ""


def reason(run: ScheduleRun) -> list[str]:
    """Explain which call ran between a lookup and the call that relied on its answer.

    Args:
        run: A failed run.

    Returns:
        Sentences; the one closest to the failure comes first.
    """
    moves = run.trace.moves
    found: list[str] = []
    for number, move in enumerate(moves, 1):
        if move.choice.given == IMPATIENT and not found:
            found.append(
                f"from step {number} on, process {move.choice.rank} repeats its calls although another"
                " process could continue, as if that one was slow; its timeout or retry limit ends the loop"
            )
    for last in range(len(moves) - 1, -1, -1):
        rank = moves[last].choice.rank
        if run.failure is not None and run.failure.rank not in (None, rank):
            continue
        said = _between(moves, last)
        if said:
            found.append(said)
        if len(found) == 2 or (found and run.failure is not None and run.failure.rank is not None):
            break
    return found


def _between(moves: Sequence[Move], last: int) -> str:
    """Find an earlier call of this process on the same names, and a change by another process in between."""
    mine = moves[last]
    if mine.choice.given > TRUTH:
        return f"step {last + 1} ({mine.name} {mine.target}) got a stale answer"
    for changed in range(last - 1, -1, -1):
        other = moves[changed]
        shared = other.footprint.changes & _all(mine)
        if other.choice.rank == mine.choice.rank or not shared:
            continue
        for looked in range(changed - 1, -1, -1):
            before = moves[looked]
            if before.choice.rank == mine.choice.rank and shared & _all(before):
                return (
                    f"step {changed + 1} of process {other.choice.rank} ({_told(other)}) ran between"
                    f" steps {looked + 1} and {last + 1} of process {mine.choice.rank}"
                    f" ({_told(before)}, {_told(mine)})"
                )
    return ""


def _all(move: Move) -> frozenset[Name]:
    return move.footprint.reads | move.footprint.changes
