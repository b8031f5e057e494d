"""The events of a run: moves, their dependencies, and the races that can be reversed."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.instrument.model import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.explore.code_places import Frame

TRUTH, KILLED, RESTARTED, IMPATIENT = 0, -1, -2, -3
"""What a process gets: the true answer, the k-th stale answer (k > 0), or a kill -9 instead of its call; a
killed process gets another start.

`IMPATIENT` is the true answer for a process in a retry loop that no longer waits for the others.
"""
FAULT_BASE = -10
"""The first fault of the scenario; the next ones have lower numbers."""

Name = tuple[str, str, str]
"""A key of a footprint whose inode has a name that is the same in every run with the same moves."""

EVERYTHING: Name = ("world", "", "")


class Choice(NamedTuple):
    """The process that moves next, and the answer that it gets."""

    rank: int
    given: int = TRUTH

    @property
    def fault(self) -> int | None:
        """The index of the fault that the process gets, or None."""
        return FAULT_BASE - self.given if self.given <= FAULT_BASE else None


Schedule = tuple[Choice, ...]


class NamedFootprint(NamedTuple):
    """What a move read and changed: a `Footprint` whose inodes have names that are the same in every run."""

    reads: frozenset[Name]
    writes: frozenset[Name]
    adds: frozenset[Name]

    def depends_on(self, other: NamedFootprint) -> bool:
        """Return whether two moves of different processes do not commute.

        Two moves commute unless one writes what the other reads or changes, or adds to what the other reads
        or writes. Two names that appear in or vanish from one directory commute: either they are different
        entries, or one move writes what the other writes.
        """
        if EVERYTHING in self.writes or EVERYTHING in other.writes:
            return bool(any(self) and any(other))
        return not (
            self.writes.isdisjoint(other.reads)
            and self.writes.isdisjoint(other.writes)
            and self.writes.isdisjoint(other.adds)
            and self.reads.isdisjoint(other.writes)
            and self.reads.isdisjoint(other.adds)
            and self.adds.isdisjoint(other.writes)
            and self.adds.isdisjoint(other.reads)
        )

    def spoils(self, other: NamedFootprint) -> frozenset[Name]:
        """Return what this move changes so that it does not commute with another one that touches it."""
        touched = other.reads | other.changes
        if EVERYTHING in self.writes:
            return touched
        if EVERYTHING in other.writes:
            return self.changes
        return (self.writes & touched) | (self.adds & (other.reads | other.writes))

    @property
    def changes(self) -> frozenset[Name]:
        """Everything that was changed."""
        return self.writes | self.adds

    def joined(self, other: NamedFootprint) -> NamedFootprint:
        """Return the union of two footprints."""
        return NamedFootprint(self.reads | other.reads, self.writes | other.writes, self.adds | other.adds)


NOTHING = NamedFootprint(frozenset(), frozenset(), frozenset())
ANYTHING = NamedFootprint(frozenset(), frozenset({EVERYTHING}), frozenset())


class Move(NamedTuple):
    """One completed call of one process.

    Attributes:
        choice: The process that moved, and the answer that it got.
        name: The call.
        target: The subject of the call.
        where: File and line of the call, in a library or in the code of the user.
        result: The result of the call.
        footprint: What the call read and changed.
        now: The clock of the process after the call.
        waited: The lock that the call waited for, if any.
        dropped: The locks that the call released.
        victim: The process that the call killed, if any.
        stack: The frames of the program, innermost first; empty unless the run was traced.
    """

    choice: Choice
    name: str
    target: str
    where: str
    result: str
    footprint: NamedFootprint
    now: float = 0.0
    waited: Name | None = None
    dropped: frozenset[Name] = frozenset()
    victim: int | None = None
    stack: tuple[Frame, ...] = ()

    @property
    def has_changed(self) -> bool:
        """Whether the move changed anything but the set of living processes."""
        return any(kind not in PROCESSES for kind, _, _ in self.footprint.changes)


class Trace:
    """The moves of one run, ordered by their happens-before relation.

    A move comes after the earlier moves of its own process, and after those that it depends on. Two dependent
    moves with nothing in between are a race: they can be reversed. The release of a lock before its
    acquisition is an order, not a race; only the order of acquisitions can be reversed.

    Args:
        size: The number of processes.
    """

    def __init__(self, size: int) -> None:
        self.moves: list[Move] = []
        self.races: list[list[int]] = []
        self._clocks: list[list[int]] = []
        self._racing: list[list[int]] = []
        self._positions: list[int] = []
        self._opaque: list[int] = []
        self._touching: dict[tuple[str, Name], list[int]] = {}
        self._own: list[list[int]] = [[0] * size for _ in range(size)]

    def meet(self, ranks: list[int]) -> None:
        """Order the next moves of these processes after all earlier moves of each of them."""
        together = [max(times) for times in zip(*(self._own[rank] for rank in ranks), strict=True)]
        for rank in ranks:
            self._own[rank] = list(together)

    def append(self, move: Move) -> list[int]:
        """Add a move.

        Args:
            move: The move.

        Returns:
            The moves that it depends on directly.
        """
        rank = move.choice.rank
        clock = list(self._own[rank])
        races, later = [], []
        direct = sorted(self._conflicts(move), reverse=True)
        for at in direct:
            before = self.moves[at]
            if move.waited is not None and move.waited in before.dropped:
                later.append(at)
            elif clock[before.choice.rank] < self._positions[at]:
                races.append(at)
                _join(clock, self._clocks[at])
        self._racing.append(list(clock))
        for at in later:
            _join(clock, self._clocks[at])
        clock[rank] += 1
        self._racing[-1][rank] += 1
        self.moves.append(move)
        self.races.append(races)
        self._clocks.append(clock)
        self._positions.append(clock[rank])
        self._own[rank] = list(clock)
        self._remember(move)
        return direct

    def _conflicts(self, move: Move) -> set[int]:
        """Return the moves of other processes that a move depends on.

        For each process and name, only the last move counts; for locks, all moves count.
        """
        footprint = move.footprint
        if EVERYTHING in footprint.writes:
            found = {at for at, before in enumerate(self.moves) if footprint.depends_on(before.footprint)}
        else:
            found = set(self._opaque) if any(footprint) else set()
            for names, kinds in ((footprint.writes, "rwa"), (footprint.reads, "wa"), (footprint.adds, "rw")):
                for name in names:
                    for kind in kinds:
                        found.update(self._touching.get((kind, name), ()))
        return {at for at in found if self.moves[at].choice.rank != move.choice.rank}

    def _remember(self, move: Move) -> None:
        at, footprint = len(self.moves) - 1, move.footprint
        if EVERYTHING in footprint.writes:
            self._opaque.append(at)
        for kind, names in (("r", footprint.reads), ("w", footprint.writes), ("a", footprint.adds)):
            for name in names:
                before = self._touching.setdefault((kind, name), [])
                if name[0] != "lock":
                    before[:] = [
                        other for other in before if self.moves[other].choice.rank != move.choice.rank
                    ]
                before.append(at)

    def is_before(self, first: int, second: int) -> bool:
        """Return whether a move happens before another."""
        return self._clocks[second][self.moves[first].choice.rank] >= self._positions[first]

    def is_known(self, rank: int, move: int) -> bool:
        """Return whether a move happens before the next move of a process, given what it has seen so far."""
        return self._own[rank][self.moves[move].choice.rank] >= self._positions[move]

    def up_to(self, moves: Sequence[int]) -> Schedule:
        """Return the shortest schedule with these moves, equivalent to the beginning of this one.

        Args:
            moves: The indices of the moves.

        Returns:
            The choices of these moves, and of all moves that happen before one of them.
        """
        return tuple(
            move.choice
            for at, move in enumerate(self.moves)
            if any(at == last or (at < last and self.is_before(at, last)) for last in moves)
        )

    def first_movers(self, first: int, second: int) -> list[int]:
        """Return the processes that can move first in order to reverse a race.

        These are the initials of source-DPOR (Abdulla, Aronis, Jonsson, Sagonas: Source Sets, JACM 2017).
        Candidates are the moves that do not come after the first move of the race, and its second move.
        Initials are those that depend on no other candidate.

        Args:
            first: The move that came first.
            second: The move that came second.

        Returns:
            The processes, with the process of the second move first if it is among them.
        """
        freed = [at for at in range(first + 1, second) if not self.is_before(first, at)]
        found: list[int] = []
        for at in [*freed, second]:
            clock = self._racing[at] if at == second else self._clocks[at]
            free = all(
                clock[self.moves[other].choice.rank] < self._positions[other] for other in freed if other < at
            )
            rank = self.moves[at].choice.rank
            if free and rank not in found:
                found.insert(0 if at == second else len(found), rank)
        return found


def _join(clock: list[int], other: list[int]) -> None:
    for at, time in enumerate(other):
        if time > clock[at]:
            clock[at] = time


def switches(schedule: Schedule) -> int:
    """Count the context switches of a schedule."""
    return sum(one.rank != two.rank for one, two in itertools.pairwise(schedule))
