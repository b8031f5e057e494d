"""Sleeps that are used instead of a barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.model import ASKING, Reach
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.loops import calls_in, loops_in
from fsrace_lint.analysis.dataflow.process_set import MAIN, TOP, Runs, runs
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import all_in, children
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.synchronization.wait_limits import WaitLimits
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction


class Sleep(Record, frozen=True, eq=False):
    """A sleep that the order of ranks depends on.

    Attributes:
        access: The sleep.
        use: The access after it that needs the order.
        change: The access before it whose result other ranks need, if found.
    """

    access: Access
    use: Access
    change: Access | None = None

    @property
    def told(self) -> str:
        """The sleep, as a trace shows it."""
        return spell(self.access.call_site.call)


class Sleeps:
    """Finds the sleeps of functions that are used instead of a barrier."""

    def __init__(self, sequences: EventSequences, limits: WaitLimits) -> None:
        """Initialize for a project."""
        self.sequences = sequences
        self.accesses = sequences.accesses
        self.flows = sequences.flows
        self.entry_states = sequences.entry_states
        self.limits = limits

    def of(self, function: LinkedFunction) -> Iterator[Sleep]:
        """Yield the sleeps of a function that the order of ranks depends on."""
        if not self.flows.relevance.may_use(function, self.flows.catalog.last_names["sleep"]):
            return
        waiting = _calls_of_waiting_loops(function)
        order = {call_site: position for position, call_site in enumerate(self.flows.call_sites(function))}
        steps = self.sequences.of(function)
        for sleep in self.flows.call_sites(function):
            if self.limits.is_sleep(sleep) and sleep.call not in waiting:
                here = order[sleep]
                before = [step for step in steps if order[step.call_site] < here]
                after = [step for step in steps if order[step.call_site] > here]
                yield from self._sleeps(sleep, before, after)

    def _sleeps(
        self, sleep: CallSite, before: list[SequenceItem], after: list[SequenceItem]
    ) -> Iterator[Sleep]:
        if any(self._asks_rank(value, sleep.state.scope) for value in sleep.call.arguments):
            for use in self._following(sleep, after):
                if use.op not in ASKING and use.is_contended:
                    yield self._pause(sleep, use)
                    return
        elif not sleep.state.processes & MAIN:
            for use in self._following(sleep, after):
                if use.reach is not Reach.PRIVATE:
                    yield self._pause(sleep, use)
                    return
        elif sleep.state.processes == TOP:
            changes = list(self._preceding(before))
            for use in self._following(sleep, after) if changes else ():
                change = next((change for change in changes if _shows(change, use)), None)
                if change is not None:
                    yield self._pause(sleep, use, change)
                    return

    def _pause(self, sleep: CallSite, use: Access, change: Access | None = None) -> Sleep:
        return Sleep(
            self.accesses.access_with_processes(sleep, use.operation, use.leaf_call.state.scope), use, change
        )

    def _following(self, sleep: CallSite, after: Sequence[SequenceItem]) -> Iterator[Access]:
        """Yield the accesses that sleeping ranks run after the sleep and before the next sync point."""
        for step in after:
            if mutually_exclusive(sleep.state.conditions, step.call_site.state.conditions):
                continue
            if step.sync_point:
                return
            access = self.sequences.access(step)
            if access is not None and step.processes & sleep.state.processes:
                yield access

    def _preceding(self, before: Sequence[SequenceItem]) -> Iterator[Access]:
        """Yield the changes since the previous sync point, nearest first."""
        for step in reversed(before):
            if step.sync_point:
                return
            access = self.sequences.access(step)
            if access is not None and access.op not in ASKING:
                yield access

    def _asks_rank(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether a duration depends on the rank."""
        if self.entry_states.rank_tests.rank_scope(expr, scope) in {"global", "local", "group", "filesystem"}:
            return True
        return any(self._asks_rank(child, scope) for child in children(expr))


def _shows(change: Access, use: Access) -> bool:
    """Return whether an access reads what other ranks changed.

    That is a path that one rank creates, or a directory that contains a file of each rank.
    """
    if change.path is None or use.path is None or use.op not in ASKING or use.runs is Runs.ONE:
        return False
    if change.reach is Reach.PRIVATE:
        return use.reach is not Reach.PRIVATE and change.path.is_within(use.path)
    few = runs(change.own) in {Runs.ONE, Runs.PER_NODE}
    return few and _overlap(change.path, use.path)


def _overlap(one: AbstractPath, other: AbstractPath) -> bool:
    return one.is_within(other) or other.is_within(one)


def _calls_of_waiting_loops(function: LinkedFunction) -> set[m.Call]:
    """Return the calls in loops that wait or retry.

    Every `while` loop counts, and every `for` loop with a `try`, `break`, `return`, or `continue`.
    """
    found: set[m.Call] = set()
    for loop in loops_in(function.facts.body):
        leaving = (m.Try, m.Break, m.Return, m.Continue)
        if isinstance(loop, m.While) or any(isinstance(inner, leaving) for inner in all_in(loop.body)):
            found |= set(calls_in(loop.body))
    return found
