"""Search for the simplest schedule that fails in the same way, with the fewest context switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.explore.errors import Nondeterministic
from fsrace_lint.explore.moves import IMPATIENT, TRUTH, Choice, switches
from fsrace_lint.explore.search.bounded import can_go_on
from fsrace_lint.explore.search.director import onward

_LAST: Final = 3
"""The part of the runs that is kept for shortening the schedule with the fewest context switches."""

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.explore.moves import Schedule
    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.running.verdict import Failure
    from fsrace_lint.explore.search.director import Director


class Shrinker:
    """Searches for simpler schedules.

    Args:
        director: Starts runs.
        failure: The failure to preserve.
        most_runs: The maximum number of runs.

    Attributes:
        best: The simplest failing schedule so far; empty if none was run.
        is_least: Whether no schedule with fewer context switches fails in the same way.
    """

    def __init__(self, director: Director, failure: Failure, most_runs: int) -> None:
        self.is_least = False
        self.best: Schedule = ()
        self._director = director
        self._failure = failure
        self._most = most_runs
        self._left = most_runs - most_runs // _LAST

    def shrink(self, schedule: Schedule) -> Schedule:
        """Return the simplest failing schedule that was found.

        Args:
            schedule: A failing schedule.

        Returns:
            A schedule that fails in the same way, with as few context switches as possible.
        """
        # no process interrupts another one: only as many runs as there are orders of processes
        best = self._with_switches(0) or schedule
        for change in (self._with_truth, self._with_joined_blocks):
            best = self._descend(best, change)
        for most in range(1, switches(best)):
            found = self._with_switches(most)
            if found is not None:
                best = self._descend(found, self._with_truth)
                break
        self.is_least = self._left > 0
        self._left += self._most // _LAST
        return self._shortest(best)

    def _descend(self, best: Schedule, change: object) -> Schedule:
        improved = True
        while improved and self._left > 0:
            improved = False
            for candidate in change(best):  # type: ignore[operator]
                again = self._try(candidate)
                if again is not None and _cost(again) < _cost(best):
                    best, improved = again, True
                    break
        return best

    def _try(self, candidate: Sequence[Choice]) -> Schedule | None:
        """Run a schedule as far as possible; return the actual moves if it fails in the same way."""
        left = list(reversed(candidate))

        def choose(run: ScheduleRun) -> Choice:
            while left:
                choice = left.pop()
                if run.allows(choice):
                    return choice
                if choice.rank in run.ready():
                    return run.first_choice(choice.rank)
            return onward(run)

        return self._run(choose)

    def _run(self, choose: object) -> Schedule | None:
        if self._left <= 0:
            return None
        self._left -= 1
        try:
            run = self._director.play(choose)  # type: ignore[arg-type]
        except Nondeterministic:
            return None
        if not self._failure.is_like(run.failure):
            return None
        found = run.schedule()
        if not self.best or _cost(found) < _cost(self.best):
            self.best = found
        return found

    def _with_truth(self, schedule: Schedule) -> Iterator[Sequence[Choice]]:
        for at, choice in enumerate(schedule):
            if choice.given != TRUTH:
                yield [*schedule[:at], Choice(choice.rank), *schedule[at + 1 :]]

    def _with_joined_blocks(self, schedule: Schedule) -> Iterator[Sequence[Choice]]:
        blocks = _blocks(schedule)
        for at, block in enumerate(blocks):
            for other in range(at + 2, len(blocks)):
                if blocks[other][0].rank == block[0].rank:
                    between = blocks[at + 1 : other]
                    rest = blocks[other + 1 :]
                    yield _flat([*blocks[:at], block, blocks[other], *between, *rest])
                    yield _flat([*blocks[:at], *between, block, blocks[other], *rest])
                    break
        for at in range(1, len(blocks)):
            yield _flat(blocks[:at])

    def _shortest(self, best: Schedule) -> Schedule:
        """Find the fewest calls with the same context switches; the last process continues to the failure."""
        ranks = [block[0].rank for block in _blocks(best)]
        if any(choice.given != TRUTH for choice in best):
            return best
        for total in range(len(ranks) - 1, len(best) - 1):
            for lengths in _parts(total, len(ranks) - 1):
                blocks = [[Choice(rank)] * length for rank, length in zip(ranks, lengths, strict=False)]
                again = self._try([*_flat(blocks), *[Choice(ranks[-1])] * len(best)])
                if again is not None and _cost(again) < _cost(best):
                    return again
        return best

    def _with_switches(self, most: int) -> Schedule | None:
        """Return a failing schedule with at most `most` context switches, by trying all of them."""
        ways: list[list[Choice]] = []

        def choose(run: ScheduleRun) -> Choice:
            at = len(run.trace.moves)
            if at == len(ways):
                ways.append(self._options(run, most))
            return ways[at][0]

        while self._left > 0:
            found = self._run(choose)
            if found is not None and switches(found) <= most:
                return found
            while ways and len(ways[-1]) == 1:
                ways.pop()
            if not ways:
                return None
            del ways[-1][0]
        return None

    def _options(self, run: ScheduleRun, most: int) -> list[Choice]:
        done = run.schedule()
        ready = run.ready()
        ranks = ready
        if done:
            last = done[-1].rank
            others = [rank for rank in ready if rank != last] if switches(done) < most else []
            ranks = [last, *others] if can_go_on(run) else others or ready[:1]
        found = [Choice(rank, given) for rank in ranks for given in run.given(rank)]
        may_switch = not done or switches(done) < most
        late = [rank for rank in run.waiting() if may_switch or rank == done[-1].rank]
        return found + [Choice(rank, IMPATIENT) for rank in late]


def _cost(schedule: Schedule) -> tuple[int, int, int]:
    return sum(choice.given != TRUTH for choice in schedule), switches(schedule), len(schedule)


def _blocks(schedule: Schedule) -> list[list[Choice]]:
    blocks: list[list[Choice]] = []
    for choice in schedule:
        if blocks and blocks[-1][0].rank == choice.rank:
            blocks[-1].append(choice)
        else:
            blocks.append([choice])
    return blocks


def _flat(blocks: Sequence[Sequence[Choice]]) -> list[Choice]:
    return [choice for block in blocks for choice in block]


def _parts(total: int, count: int) -> Iterator[list[int]]:
    """Yield every way to write a number as a sum of `count` positive numbers."""
    if count <= 1:
        if count == 1 or not total:
            yield [total] * count
        return
    for first in range(1, total - count + 2):
        for rest in _parts(total - first, count - 1):
            yield [first, *rest]
