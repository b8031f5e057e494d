"""Accesses that other processes wait for without a barrier: by polling, or for a signal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.analysis.accesses.model import LOOKING
from fsrace_lint.program.symbols import qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.synchronization.polling import Polling
    from fsrace_lint.catalog import Op
    from fsrace_lint.program.modules import LinkedFunction

MAKING: Final[frozenset[Op]] = frozenset(
    {"write", "create", "mkdir", "copy", "rename", "link", "extract", "download"}
)
_CALLEES: Final = 2
"""The maximum call depth of a signal, or of the call that waits for it."""


class _Wait(NamedTuple):
    """A wait for a path."""

    path: AbstractPath | None
    is_for_presence: bool
    processes: ProcessSet


class _Reached(NamedTuple):
    """A call in a function or in its callees: the call in the function, the call itself, and who runs it."""

    outer: CallSite
    call_site: CallSite
    processes: ProcessSet


class AwaitedAccesses:
    """Finds out whether processes wait until others have made an access."""

    def __init__(self, sequences: EventSequences, polling: Polling) -> None:
        """Initialize for a project."""
        self.sequences = sequences
        self.polling = polling
        self.flows = sequences.flows
        self.entry_states = sequences.entry_states

    def orders(self, steps: Sequence[SequenceItem], first: int, last: int) -> bool:
        """Return whether the ranks of the second event wait until the ranks of the first one are past it.

        They poll for its path, or for a file that those ranks create afterward. Or those ranks send a signal
        afterward, for which the others wait.
        """
        step, later = steps[first], steps[last]
        others = later.processes & ~step.processes
        done = [s for s in steps[first:] if not step.processes & ~s.processes]
        waits = (wait for wait in self._waits(steps, last) if not others & ~wait.processes)
        if any(_is_met(wait, each) for wait in waits for each in done):
            return True
        return self._is_signaled(step, later, others)

    def _waits(self, steps: Sequence[SequenceItem], last: int) -> Iterator[_Wait]:
        """Yield the polls before an event: loops in the function and its callees, and calls that wait."""
        for step in steps[:last]:
            if step.op in LOOKING:
                for poll in self.polling.of(step.leaf_call.function):
                    if poll.access.call_site is step.leaf_call:
                        yield _Wait(step.path, poll.is_for_presence, step.processes)
        call_site = steps[last].call_site
        for poll in self.polling.of(call_site.function):
            if poll.access.call_site.call.span < call_site.call.span:
                processes = self.entry_states.processes(poll.access.call_site)
                yield _Wait(poll.access.path, poll.is_for_presence, processes)

    def _is_signaled(self, step: SequenceItem, later: SequenceItem, others: ProcessSet) -> bool:
        """Return whether the ranks of one event send a signal after it, which others await before another."""
        calls = list(self._reached(step.call_site.function, 0))
        sent = [
            call
            for call in calls
            if call.outer.call.span > step.call_site.call.span and not step.processes & ~call.processes
        ]
        for signal in sent:
            entry = self.flows.catalog.find("signal", self._name(signal.call_site))
            for call in calls if entry is not None else ():
                waits = last_name(call.call_site.call.function) in entry.awaited_in
                in_time = call.outer.call.span < later.call_site.call.span and not others & ~call.processes
                if waits and in_time and self._is_same_owner(signal.call_site, call.call_site):
                    return True
        return False

    def _reached(self, function: LinkedFunction, depth: int) -> Iterator[_Reached]:
        for call_site in self.flows.call_sites(function):
            processes = self.entry_states.processes(call_site)
            yield _Reached(call_site, call_site, processes)
            callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
            for inner in self._reached(callee, depth + 1) if callee is not None and depth < _CALLEES else ():
                yield _Reached(call_site, inner.call_site, processes & inner.processes)

    def _name(self, call_site: CallSite) -> str:
        called = call_site.call.function
        entity = self.flows.resolver.symbol(called, call_site.state.scope)
        return qualified_name(entity) or f"*.{last_name(called)}"

    def _is_same_owner(self, signal: CallSite, wait: CallSite) -> bool:
        """Return whether two calls belong to one object by its name, or to one module or class."""
        one, other = signal.call.function, wait.call.function
        owners = [self._name(each).rpartition(".")[0] for each in (signal, wait)]
        if any(self.flows.catalog.is_in_process(f"{owner}.") for owner in owners):
            return False
        by_name = isinstance(one, m.Attribute) and isinstance(other, m.Attribute) and one.value == other.value
        return by_name or (owners[0] == owners[1] != "*")


def are_alike(own: AbstractPath, other: AbstractPath) -> bool:
    """Return whether two paths differ only in what is not literal, such as the rank and a loop variable."""
    if own.components[:-1] != other.components[:-1] or not own.components or not other.components:
        return False
    last = own.components[-1], other.components[-1]
    texts = [[piece for piece in component if isinstance(piece, str)] for component in last]
    return texts[0] == texts[1] != []


def _is_met(wait: _Wait, done: SequenceItem) -> bool:
    """Return whether an access ends a wait. A wait for an unknown file may be one for any file."""
    ends = done.op in MAKING if wait.is_for_presence else done.op == "delete"
    if not ends or wait.path is None or done.path is None or not _is_spelled(wait.path):
        return ends
    return done.path == wait.path or (done.path.rank_dependent and are_alike(done.path, wait.path))


def _is_spelled(path: AbstractPath) -> bool:
    """Return whether the name of a file has a literal part."""
    return any(isinstance(piece, str) for component in path.components[-1:] for piece in component)
