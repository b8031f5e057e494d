"""All orders that can make a difference, each once: source-DPOR with sleep sets.

Abdulla, Aronis, Jonsson, Sagonas: "Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction",
JACM 2017, algorithm 1. Each run starts from the beginning and is searched for races.
`moves.NamedFootprint.depends_on` defines dependency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.moves import TRUTH, Choice
from fsrace_lint.explore.running.interruption import Interrupted
from fsrace_lint.explore.search.director import onward, same_move

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.explore.moves import Move, NamedFootprint
    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.search.director import Director


class _Node:
    """One state along the current run.

    Attributes:
        ready: The processes that can move here.
        todo: The processes to try here.
        asleep: The processes that need not be tried, because their next move was explored, and no dependent
            move has happened since.
        choice: The choice that is tried now.
        left: The other answers that the same process can get.
        footprint: What the process has touched so far, over all of its answers.
    """

    def __init__(self, ready: list[int], asleep: dict[int, NamedFootprint]) -> None:
        self.ready = ready
        self.todo: list[int] = []
        self.asleep = asleep
        self.choice: Choice | None = None
        self.left: list[int] = []
        self.footprint: NamedFootprint | None = None
        self.move: Move | None = None

    def begin(self, rank: int, given: list[int]) -> None:
        """Try a process here."""
        if rank not in self.todo:
            self.todo.append(rank)
        self.choice = Choice(rank, given[0])
        self.left = given[1:]
        self.footprint, self.move = None, None

    def note(self, move: Move) -> None:
        """Record the move of the process."""
        if self.move is not None and move.choice == self.move.choice:
            same_move(self.move, move)
        self.move = move
        self.footprint = move.footprint if self.footprint is None else self.footprint.joined(move.footprint)

    def asleep_after(self) -> dict[int, NamedFootprint]:
        """Return the processes that are still asleep after the move."""
        move = self.move
        if move is None:
            return {}
        return {
            rank: footprint
            for rank, footprint in self.asleep.items()
            if rank != move.choice.rank and not footprint.depends_on(move.footprint)
        }

    def advance(self) -> bool:
        """Select the next choice to try, and return whether there is one."""
        if self.choice is not None:
            if self.left:
                self.choice = Choice(self.choice.rank, self.left.pop(0))
                self.move = None
                return True
            if self.footprint is not None:
                self.asleep[self.choice.rank] = self.footprint
        for rank in self.todo:
            if rank not in self.asleep:
                self.choice, self.left, self.footprint, self.move = Choice(rank), [], None, None
                return True
        self.choice = None
        return False


class Dpor:
    """A systematic search.

    Args:
        director: Starts runs.

    Attributes:
        is_exhausted: Whether every order that can make a difference has run.
    """

    def __init__(self, director: Director) -> None:
        self.is_exhausted = False
        self._director = director
        self._nodes: list[_Node] = []

    def runs(self) -> Iterator[ScheduleRun]:
        """Yield the finished runs."""
        while not self.is_exhausted:
            known = len(self._nodes)
            try:
                run = self._director.play(self._choose)
            except Interrupted:
                del self._nodes[known:]
                raise
            del self._nodes[len(run.trace.moves) :]
            self._note_last(run)
            self._find_races(run, max(0, known - 1))
            # before the yield, so that the search can be saved between any two runs
            while self._nodes and not self._nodes[-1].advance():
                self._nodes.pop()
            self.is_exhausted = not self._nodes
            # a run is abandoned if everything that it could still do was explored
            if run.failure is not None or not run.ready():
                yield run

    def _choose(self, run: ScheduleRun) -> Choice | None:
        self._note_last(run)
        at = len(run.trace.moves)
        if at < len(self._nodes):
            node = self._nodes[at]
            choice = node.choice
            if choice is not None and node.footprint is None and not node.left and choice.given == TRUTH:
                # the first attempt of a process here: its possible answers are known only now
                node.begin(choice.rank, run.given(choice.rank))
            return node.choice
        asleep = self._nodes[-1].asleep_after() if self._nodes else {}
        node = _Node(run.ready(), asleep)
        if all(rank in asleep for rank in node.ready):
            return None
        rank = onward(run, list(asleep)).rank
        node.begin(rank, run.given(rank))
        self._nodes.append(node)
        return node.choice

    def _note_last(self, run: ScheduleRun) -> None:
        at = len(run.trace.moves) - 1
        if 0 <= at < len(self._nodes):
            self._nodes[at].note(run.trace.moves[at])

    def _find_races(self, run: ScheduleRun, new: int) -> None:
        """Schedule the reversal of every race among the new moves."""
        trace = run.trace
        for second in range(new, len(trace.moves)):
            for first in trace.races[second]:
                node = self._nodes[first]
                movers = [rank for rank in trace.first_movers(first, second) if rank in node.ready]
                if movers and not any(rank in node.todo for rank in movers):
                    node.todo.append(movers[0])
