"""What can order two accesses, although nothing is known that does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.process_set import MAIN, SYNCHRONIZING, Runs, runs
from fsrace_lint.catalog.lexicon import meaning, says, words
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, setting_of
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.catalog import Op

_LOOKING: Final[frozenset[Op]] = frozenset({"read", "list"})


class OrderDoubts:
    """Finds out whether two accesses by different ranks can be ordered after all."""

    def __init__(self, sequences: EventSequences) -> None:
        """Initialize for a project."""
        self.sequences = sequences
        self.flows = sequences.flows

    def are_between(self, first: SequenceItem, last: SequenceItem) -> bool:
        """Return whether the order of two accesses is doubtful.

        A job or a wait in unknown code lies between them; a run that continues another one reads what that
        one left; the other process is the same one if there is one node; or nothing shows multiple ranks.
        """
        return (
            any(self._may_wait(call_site) for call_site in self._between(first, last))
            or (first.op == "mkdir" and last.op in _LOOKING and _resumes(last))
            or {first.processes, last.processes} == {MAIN, self._of_nodes(first, last)}
            or not self._are_ranks(first, last)
        )

    def _between(self, first: SequenceItem, last: SequenceItem) -> Iterator[CallSite]:
        """Yield the calls between two accesses, also in the functions that contain the accesses."""
        inside = self.flows.call_sites(first.call_site.function)
        begin, end = inside.index(first.call_site), inside.index(last.call_site)
        yield from inside[begin + 1 : end]
        if first.leaf_call is not first.call_site:
            after = self.flows.call_sites(first.leaf_call.function)
            yield from after[after.index(first.leaf_call) + 1 :]
        if last.leaf_call is not last.call_site:
            before = self.flows.call_sites(last.leaf_call.function)
            yield from before[: before.index(last.leaf_call)]

    def _may_wait(self, call_site: CallSite) -> bool:
        """Return whether the ranks may wait for each other in a call of unknown code.

        The code of a barrier is also unknown if the method of a base class has no known barrier in it.
        """
        called = last_name(call_site.call.function)
        is_barrier, is_job = says(called, "barrier"), not meaning("job").isdisjoint(words(called)[:1])
        if not is_barrier and not is_job:
            return False
        callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
        if callee is None:
            return not self.sequences.catalog.is_any(SYNCHRONIZING, self.sequences.name_of(call_site))
        return is_barrier and not any(step.sync_point for step in self.sequences.of(callee))

    @staticmethod
    def _of_nodes(first: SequenceItem, last: SequenceItem) -> object:
        """Return the ranks of the access that one process of each node runs, if there is one."""
        of_nodes = (item.processes for item in (first, last) if runs(item.processes) is Runs.PER_NODE)
        return next(of_nodes, None)

    def _are_ranks(self, first: SequenceItem, last: SequenceItem) -> bool:
        """Return whether the code shows that multiple ranks run one of two accesses."""
        accesses = (self.sequences.access(item) for item in (first, last))
        return any(access is not None and access.evidence >= Evidence.LIKELY for access in accesses)


def _resumes(item: SequenceItem) -> bool:
    """Return whether an access depends on a setting that continues an earlier run."""
    tests = (part for literal in item.conditions for part in within(literal.test))
    names = (setting_of(part) or last_name(part) for part in tests if not isinstance(part, m.Constant))
    return any(says(name, "resumption") for name in names)
