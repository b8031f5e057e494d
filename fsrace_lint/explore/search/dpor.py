"""All orders that can make a difference, each once: source-DPOR with sleep sets.

Abdulla, Aronis, Jonsson, Sagonas: "Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction",
JACM 2017, algorithm 1. Each run starts from the beginning and is searched for races.
`moves.NamedFootprint.depends_on` defines dependency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.explore.moves import ANYTHING, IMPATIENT, KILLED, NOTHING, TRUTH, Choice
from fsrace_lint.explore.running.interruption import Interrupted
from fsrace_lint.explore.search.director import onward, same_move

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.explore.moves import Move, NamedFootprint
    from fsrace_lint.explore.running.retry_detector import Loop
    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.search.director import Director


class _Node:
    """One state along the current run.

    Attributes:
        ready: The processes that can move here.
        waiting: The processes that can move here if they are impatient, and their retry loops.
        todo: The processes to try here.
        late: The impatient processes to try here, after everything else.
        asleep: The processes that need not be tried, because their next move was explored, and no dependent
            move has happened since.
        choice: The choice that is tried now.
        left: The other answers that the same process can get.
        footprint: What the process has touched so far, over all of its answers.
        is_doomed: Whether the process waits, and can only be killed here.
    """

    def __init__(self, ready: list[int], waiting: dict[int, Loop], asleep: dict[int, NamedFootprint]) -> None:
        self.ready = ready
        self.waiting = waiting
        self.todo: list[int] = []
        self.late: list[int] = []
        self.asleep = asleep
        self.choice: Choice | None = None
        self.is_resumed = False
        self.left: list[int] = []
        self.footprint: NamedFootprint | None = None
        self.move: Move | None = None
        self.is_doomed = False

    def begin(self, rank: int, given: list[int]) -> None:
        """Try a process here."""
        if rank not in self.todo:
            self.todo.append(rank)
        self.choice = Choice(rank, given[0])
        self.left = given[1:]
        self.footprint, self.move = None, None
        self.is_doomed = given[0] == KILLED

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
                before = self.asleep.get(self.choice.rank, NOTHING)
                # a process that waits can make its call later, so any move wakes it
                self.asleep[self.choice.rank] = ANYTHING if self.is_doomed else self.footprint.joined(before)
        for rank in self.todo:
            if rank not in self.asleep:
                self._try(Choice(rank, IMPATIENT if rank in self.waiting else TRUTH))
                return True
        self.choice = None
        return False

    def _try(self, choice: Choice) -> None:
        self.choice, self.left, self.footprint, self.move = choice, [], None, None
        self.is_resumed = False

    def resume(self, choice: Choice) -> None:
        """Make a choice again, in order to try something new after it."""
        self._try(choice)
        self.is_doomed = choice.given == KILLED
        self.is_resumed = True

    def postpone(self, ranks: list[int]) -> None:
        """Try one of these impatient processes here in the end, unless one of them is tried anyway."""
        found = [rank for rank in ranks if rank in self.waiting]
        if found and not any(rank in self.todo or rank in self.late for rank in ranks):
            self.late.append(found[0])


class Dpor:
    """A systematic search.

    Args:
        director: Starts runs.

    Attributes:
        is_exhausted: Whether every order that can make a difference has run.
        finished: The number of runs that were not abandoned.
    """

    def __init__(self, director: Director) -> None:
        self.is_exhausted = False
        self.finished = 0
        self._director = director
        self._nodes: list[_Node] = []
        self._stalled: list[_Node] = []
        self._postponed: list[tuple[list[tuple[_Node, Choice | None]], _Node]] = []

    def state(self) -> dict[str, object]:
        """Return the search as data that `restore()` takes."""
        return {name: value for name, value in vars(self).items() if name != "_director"}

    def restore(self, state: dict[str, object]) -> None:
        """Continue where a search stopped."""
        vars(self).update(state)

    def runs(self) -> Iterator[ScheduleRun]:
        """Yield the finished runs."""
        while not self.is_exhausted:
            known, self._stalled = len(self._nodes), []
            try:
                run = self._director.play(self._choose)
            except Interrupted:
                del self._nodes[known:]
                raise
            del self._nodes[len(run.trace.moves) :]
            self._note_last(run)
            # a run is abandoned if everything that it could still do was explored
            is_finished = run.in_vain is None and (run.failure is not None or not run.ready())
            if run.in_vain is None:
                self._find_races(run, max(0, known - 1))
                self._spare_victims(run)
                self.finished += is_finished
            else:
                while self._nodes[-1].choice != Choice(run.in_vain, IMPATIENT):
                    self._nodes.pop()
            self._nodes += self._stalled
            # before the yield, so that the search can be saved between any two runs
            self.is_exhausted = not self._advance()
            if is_finished:
                yield run

    def _advance(self) -> bool:
        """Select the next schedule, and return whether there is one; impatient processes come last."""
        while self._nodes:
            if self._nodes[-1].advance():
                return True
            node = self._nodes.pop()
            if node.late:
                self._postponed.append(([(each, each.choice) for each in self._nodes], node))
        while self._postponed:
            path, node = self._postponed.pop()
            late, node.late = node.late, []
            node.todo += [rank for rank in late if not self._director.is_endless(node.waiting[rank])]
            if node.advance():
                for each, choice in path:
                    if choice is not None:
                        each.resume(choice)
                self._nodes = [*(each for each, _ in path), node]
                return True
        return False

    def _choose(self, run: ScheduleRun) -> Choice | None:
        self._note_last(run)
        if run.in_vain is not None:
            return None
        at = len(run.trace.moves)
        if at < len(self._nodes):
            node = self._nodes[at]
            choice = node.choice
            is_new = node.footprint is None and not node.left
            if choice is not None and is_new and choice.given == TRUTH and not node.is_resumed:
                # the first attempt of a process here: its possible answers are known only now
                node.begin(choice.rank, run.given(choice.rank))
            return node.choice
        asleep = self._nodes[-1].asleep_after() if self._nodes else {}
        ready = run.ready()
        doomed = run.doomed()
        node = _Node([*ready, *doomed], run.waiting(), asleep)
        if all(rank in asleep for rank in ready):
            node.late = [rank for rank in node.waiting if rank not in asleep]
            # a process that only waits can be killed here before the others go on
            victims = [rank for rank in doomed if rank not in asleep]
            if not victims:
                self._stalled = [node]
                return None
            node.todo += victims
            node.begin(victims[0], run.given(victims[0]))
            self._nodes.append(node)
            return node.choice
        rank = onward(run, list(asleep)).rank
        node.begin(rank, run.given(rank))
        self._nodes.append(node)
        return node.choice

    def _note_last(self, run: ScheduleRun) -> None:
        at = len(run.trace.moves) - 1
        if 0 <= at < len(self._nodes):
            self._nodes[at].note(run.trace.moves[at])

    def _spare_victims(self, run: ScheduleRun) -> None:
        """Schedule all other processes before each call that killed one of them.

        The run cannot show this race, because the killed process makes no more calls.
        """
        for node, move in zip(self._nodes, run.trace.moves, strict=False):
            if move.victim is not None:
                node.todo += [rank for rank in node.ready if rank not in node.todo]
                node.late += [rank for rank in node.waiting if rank not in (*node.late, *node.todo)]

    def _find_races(self, run: ScheduleRun, new: int) -> None:
        """Schedule the reversal of every race among the new moves."""
        trace = run.trace
        for second in range(new, len(trace.moves)):
            for first in trace.races[second]:
                node = self._nodes[first]
                initials = trace.first_movers(first, second)
                movers = [rank for rank in initials if rank in node.ready]
                if not movers:
                    node.postpone(initials)
                elif not any(rank in node.todo for rank in movers):
                    node.todo.append(movers[0])
