"""Random orders that find a bug with a known probability.

Burckhardt, Kothari, Musuvathi, Nagarakatte: "A Randomized Scheduler with Probabilistic Guarantees of Finding
Bugs", ASPLOS 2010 (PCT).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from fsrace_lint.explore.moves import IMPATIENT, TRUTH, Choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.search.director import Director

DEPTHS: Final = (2, 3, 4)
"""The depths of the bugs that the runs aim at, in turn: the number of orders that a bug depends on."""


class Sampled:
    """Random orders: the process with the highest priority moves, and priorities drop at random moves.

    With n processes and k calls, a run for depth d finds each bug of that depth with a probability of at
    least 1 / (n * k ** (d - 1)). Where a process can get different answers, some runs choose others than the
    true one.

    Args:
        director: Starts runs.
        count: The number of runs.
        seed: The seed of the random number generator.
    """

    def __init__(self, director: Director, count: int, seed: int) -> None:
        self._director = director
        self._count = count
        self._random = random.Random(seed)  # noqa: S311  # not used for security
        self._longest = 1

    def runs(self) -> Iterator[ScheduleRun]:
        """Yield the finished runs."""
        for number in range(self._count):
            depth = DEPTHS[number % len(DEPTHS)]
            run = self._run(depth, deviates=bool(number // len(DEPTHS) % 2))
            self._longest = max(self._longest, len(run.trace.moves))
            yield run

    def _run(self, depth: int, *, deviates: bool) -> ScheduleRun:
        """Execute one run.

        Args:
            depth: The depth of the bugs to find; priorities drop one time less.
            deviates: Whether answers that are not true are possible, and processes can be impatient.
        """
        size = self._director.scenario.processes
        priorities = self._random.sample(range(depth, depth + size), size)
        drops = {self._random.randrange(self._longest): low for low in range(depth - 1)}
        other = {self._random.randrange(self._longest) for _ in range(depth - 1)} if deviates else set()

        def choose(run: ScheduleRun) -> Choice:
            at = len(run.trace.moves)
            if at in drops:
                priorities[self._highest(run, priorities)] = drops[at]
            rank = self._highest(run, priorities)
            others = [Choice(rank, given) for given in run.given(rank) if given != TRUTH]
            others += [Choice(waiting, IMPATIENT) for waiting in run.waiting()]
            if others and any(moment <= at for moment in other):
                other.remove(min(other))
                return self._random.choice(others)
            return Choice(rank)

        return self._director.play(choose)

    @staticmethod
    def _highest(run: ScheduleRun, priorities: list[int]) -> int:
        return max(run.ready(), key=priorities.__getitem__)
