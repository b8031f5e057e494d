"""All orders, those with the fewest preemptions first.

Musuvathi and Qadeer: "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", PLDI 2007
(CHESS): most races need one or two preemptions.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from fsrace_lint.explore.moves import Choice
from fsrace_lint.explore.running.interruption import Interrupted
from fsrace_lint.explore.search.director import onward

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.explore.moves import Schedule
    from fsrace_lint.explore.running.run import ScheduleRun
    from fsrace_lint.explore.search.director import Director


class _Prefix(NamedTuple):
    """The first moves of schedules: one move more than in another prefix."""

    before: _Prefix | None
    choice: Choice

    def schedule(self) -> Schedule:
        choices, prefix = [], self
        while prefix.before is not None:
            choices.append(prefix.choice)
            prefix = prefix.before
        return (prefix.choice, *reversed(choices))


def _prefix(schedule: Schedule) -> _Prefix:
    first, *others = schedule
    prefix = _Prefix(None, first)
    for choice in others:
        prefix = _Prefix(prefix, choice)
    return prefix


class Bounded:
    """A systematic search without reduction, which runs each schedule once.

    Args:
        director: Starts runs.
        preemptions: The number of times that a process which can continue may be interrupted; None for no
            bound. Not waiting for the others in a retry loop counts too.

    Attributes:
        is_exhausted: Whether every such order has run.
        complete: The largest number of preemptions with which every order has run; -1 if there is none.
    """

    def __init__(self, director: Director, preemptions: int | None) -> None:
        self.is_exhausted = False
        self.complete = -1
        self._director = director
        self._most = preemptions
        self._prefixes: dict[int, list[_Prefix | None]] = defaultdict(list, {0: [None]})

    def state(self) -> dict[str, object]:
        """Return what is left to do, as plain data that `restore()` takes."""
        left = {
            number: [None if prefix is None else prefix.schedule() for prefix in prefixes]
            for number, prefixes in self._prefixes.items()
        }
        return {"complete": self.complete, "is_exhausted": self.is_exhausted, "left": left}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where a search stopped."""
        self.complete, self.is_exhausted = state["complete"], state["is_exhausted"]
        self._prefixes = defaultdict(list)
        for number, schedules in state["left"].items():
            self._prefixes[number] = [None if each is None else _prefix(each) for each in schedules]

    def runs(self) -> Iterator[ScheduleRun]:
        """Yield the finished runs; the first one has no preemptions."""
        while self._prefixes:
            preempted = min(self._prefixes)
            if self._most is not None and preempted > self._most:
                self.complete = self._most
                break
            self.complete = preempted - 1
            prefix = self._prefixes[preempted].pop()
            found: list[tuple[int, _Prefix]] = []
            try:
                run = self._run(prefix, found)
            except Interrupted:
                self._prefixes[preempted].append(prefix)
                raise
            if not self._prefixes[preempted]:
                del self._prefixes[preempted]
            for number, each in found:
                self._prefixes[number].append(each)
            if run.in_vain is None:
                yield run
        else:
            self.complete = self._most if self._most is not None else self.complete + 1
        self.is_exhausted = True

    def _run(self, prefix: _Prefix | None, found: list[tuple[int, _Prefix]]) -> ScheduleRun:
        start = prefix.schedule() if prefix is not None else ()
        here = prefix

        def choose(run: ScheduleRun) -> Choice | None:
            nonlocal here
            if run.in_vain is not None:
                return None
            at = len(run.trace.moves)
            if at < len(start):
                return start[at]
            first, *others = self._options(run)
            found.extend(
                (run.preempted + run.preempts(choice), _Prefix(here, choice)) for choice in reversed(others)
            )
            here = _Prefix(here, first)
            return first

        return self._director.play(choose)

    def _options(self, run: ScheduleRun) -> list[Choice]:
        first = onward(run).rank
        ranks = [first, *(rank for rank in run.ready() if rank != first)]
        found = [Choice(rank, given) for rank in [*ranks, *run.doomed()] for given in run.given(rank)]
        return found + [Choice(rank, given) for rank in run.waiting() for given in run.given(rank)]


def can_go_on(run: ScheduleRun) -> bool:
    """Return whether the process that moved last can move again."""
    return bool(run.trace.moves) and run.trace.moves[-1].choice.rank in run.ready()
