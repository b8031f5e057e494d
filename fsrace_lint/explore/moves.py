"""What happened in a run: moves, what each depends on, and which could have come the other way round."""

from __future__ import annotations

import itertools
from typing import NamedTuple

TRUTH, KILLED = 0, -1
"""What a process is given: the truth, the k-th older answer (k > 0), or a kill -9 in place of its call."""

Name = tuple[str, str, str]
"""A key of a footprint whose inode has a name that is the same in every run with the same moves."""

EVERYTHING: Name = ("world", "", "")


class Choice(NamedTuple):
    """Who moves next, and what it is given."""

    rank: int
    given: int = TRUTH


Schedule = tuple[Choice, ...]


class NamedFootprint(NamedTuple):
    """What a move read and changed: a `Footprint` whose inodes have names that are the same in every run."""

    reads: frozenset[Name]
    writes: frozenset[Name]
    adds: frozenset[Name]

    def depends_on(self, other: NamedFootprint) -> bool:
        """Tell whether two moves of different processes must not be swapped.

        Two moves commute unless one writes what the other reads or changes, or adds to what the other reads
        or writes. Names that appear in or vanish from one directory commute: they are different entries, or
        else one writes what the other does.
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

    @property
    def changes(self) -> frozenset[Name]:
        """All that was changed."""
        return self.writes | self.adds

    def joined(self, other: NamedFootprint) -> NamedFootprint:
        """Give what two moves touch together."""
        return NamedFootprint(self.reads | other.reads, self.writes | other.writes, self.adds | other.adds)


NOTHING = NamedFootprint(frozenset(), frozenset(), frozenset())


class Move(NamedTuple):
    """One call of one process, made.

    Attributes:
        choice: Who moved, and what it was given.
        name: The call.
        target: What it was about.
        where: File and line of the scenario's code.
        result: What came of it.
        footprint: What it read and changed.
        now: The process's clock afterwards.
        waited: The lock that it waited for, if it did.
        dropped: The locks that it dropped.
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

    @property
    def has_changed(self) -> bool:
        """Whether it changed anything."""
        return bool(self.footprint.changes)


class Trace:
    """The moves of one run, in the order of what must come before what.

    A move comes after those of its own process, and after those that it depends on. Two dependent moves with
    nothing in between are a race: they can come the other way round. That a lock is dropped before it is
    taken is an order, and no race; what can be reversed is who takes it first.

    Args:
        size: How many processes there are.
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
        """Let what these processes do next come after all that each of them has done."""
        together = [max(times) for times in zip(*(self._own[rank] for rank in ranks), strict=True)]
        for rank in ranks:
            self._own[rank] = list(together)

    def append(self, move: Move) -> list[int]:
        """Add a move.

        Args:
            move: What was done.

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
        """Find the moves of others that a move depends on: the last by process and name, of locks all."""
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
        """Tell whether a move must come before another."""
        return self._clocks[second][self.moves[first].choice.rank] >= self._positions[first]

    def is_known(self, rank: int, move: int) -> bool:
        """Tell whether a move must come before what a process does next, by what that has seen so far."""
        return self._own[rank][self.moves[move].choice.rank] >= self._positions[move]

    def first_movers(self, first: int, second: int) -> list[int]:
        """Tell who can go first where a race is to come out the other way round.

        These are the initials of source-DPOR (Abdulla, Aronis, Jonsson, Sagonas: Source Sets, JACM 2017): of
        what does not come after the first move of the race, and of its second move, those that depend on
        nothing else of it.

        Args:
            first: The move that came first.
            second: The move that came second.

        Returns:
            The processes, the second's own at the front where it is among them.
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
    """Count how often a schedule goes from one process to another."""
    return sum(one.rank != two.rank for one, two in itertools.pairwise(schedule))
