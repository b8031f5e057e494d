"""All orders with few preemptions, and random ones.

Musuvathi and Qadeer: "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", PLDI 2007
(CHESS): most races need one or two preemptions.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from fsrace_lint.explore.moves import Choice
from fsrace_lint.explore.running.interruption import Interrupted
from fsrace_lint.explore.search.director import onward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.search.director import Director


class Bounded:
    """A systematic search without reduction: every order with at most a number of preemptions.

    Args:
        director: Starts runs.
        preemptions: The number of times that a process which can continue may be interrupted; None for no
            bound.

    Attributes:
        is_exhausted: Whether every such order has run.
    """

    def __init__(self, director: Director, preemptions: int | None) -> None:
        self.is_exhausted = False
        self._director = director
        self._most = preemptions
        self._ways: list[list[Choice]] = []

    def runs(self) -> Iterator[ScheduleRun]:
        """Yield the finished runs; the first one has no preemptions."""
        while not self.is_exhausted:
            known = len(self._ways)
            try:
                run = self._director.play(self._choose)
            except Interrupted:
                del self._ways[known:]
                raise
            # before the yield, so that the search can be saved between any two runs
            while self._ways and len(self._ways[-1]) == 1:
                self._ways.pop()
            self.is_exhausted = not self._ways
            if self._ways:
                del self._ways[-1][0]
            yield run

    def _choose(self, run: ScheduleRun) -> Choice:
        at = len(run.trace.moves)
        if at == len(self._ways):
            self._ways.append(self._options(run))
        return self._ways[at][0]

    def _options(self, run: ScheduleRun) -> list[Choice]:
        first = onward(run).rank
        ranks = [first, *(rank for rank in run.ready() if rank != first)]
        if self._most is not None and run.preempted >= self._most and can_go_on(run):
            ranks = [first]
        return [Choice(rank, given) for rank in ranks for given in run.given(rank)]


def can_go_on(run: ScheduleRun) -> bool:
    """Return whether the process that moved last can move again."""
    return bool(run.trace.moves) and run.trace.moves[-1].choice.rank in run.ready()


class Sampled:
    """Random orders.

    Args:
        director: Starts runs.
        count: The number of runs.
        seed: The seed of the random number generator.
    """

    def __init__(self, director: Director, count: int, seed: int) -> None:
        self._director = director
        self._count = count
        self._random = random.Random(seed)  # noqa: S311  # not used for security

    def runs(self) -> Iterator[ScheduleRun]:
        """Yield the finished runs."""
        for number in range(self._count):
            # some runs switch often, others rarely
            change = (0.9, 0.5, 0.2, 0.05)[number % 4]
            yield self._director.play(lambda run, change=change: self._choose(run, change))  # type: ignore[misc]

    def _choose(self, run: ScheduleRun, change: float) -> Choice:
        choice = onward(run)
        if self._random.random() < change:
            choice = Choice(self._random.choice(run.ready()))
        given = run.given(choice.rank)
        if len(given) > 1 and self._random.random() < change / 2:
            return Choice(choice.rank, self._random.choice(given))
        return choice
