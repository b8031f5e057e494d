"""The `Project` that rules query."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.explanations import Reason
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.process_set import Runs, runs
from fsrace_lint.analysis.queries.files import FileQueries
from fsrace_lint.analysis.queries.locks import LockQueries
from fsrace_lint.analysis.queries.ordering import OrderingQueries
from fsrace_lint.analysis.queries.path_kinds import PathKindQueries
from fsrace_lint.files.spans import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import Module

JUDGED_AT_CALLS: Final[frozenset[Op]] = frozenset({"write", "copy", "delete", "rename", "download"})
"""The operations that rules query where callers determine the path, not in the function of the call."""


class Project(FileQueries, LockQueries, OrderingQueries, PathKindQueries):
    """The linked project, with every query that rules can use."""

    def not_reported(self, reported: Container[Span]) -> Iterator[tuple[Access, Reason]]:
        """Yield the accesses of the files to report on that are not reported, and why.

        Args:
            reported: The calls that rules reported.

        Yields:
            The accesses, file by file in source order, and the reason.
        """
        for module in self.targets:
            for function in module.functions:
                direct = self._accesses.direct(function)
                seen = (access for access in self._accesses.instantiated(function) if access not in direct)
                at_calls = (access for access in seen if access.op in JUDGED_AT_CALLS)
                for access in sorted((*direct, *at_calls), key=lambda access: access.span):
                    if access.span not in reported:
                        yield access, self._reason(access)

    def _reason(self, access: Access) -> Reason:
        reason = self._explanations.reason(access)
        if reason.is_weak and access.op == "write" and self.is_lock_file(access):
            return Reason("lock", f"`{access.path_source}` is a lock file, or is locked once it is open")
        if reason.is_weak and access.op in JUDGED_AT_CALLS and self._accesses.is_parametric(access):
            call_site = self.entry_states.callers(access.call_site.function)[0].call_site
            place = Place(call_site.function.module.path, call_site.call.span)
            return Reason("callers", "callers determine the path, and are checked instead", place)
        return reason

    def about(self, module: Module) -> Project:
        """Return the same project with one file to report on. The linked data is shared."""
        narrowed = copy.copy(self)
        narrowed.targets = (module,)
        return narrowed

    def source_of_difference(self, access: Access) -> Place | None:
        """Return the place of the call whose result makes the path of an access differ between ranks."""
        return self._explanations.source(access)

    def evidence_of_difference(self, access: Access) -> Evidence:
        """Return the evidence that multiple processes run the calls that make the path of an access differ.

        The calls can be on a branch that is not on the call chain to the access, or that one process takes.
        """
        calls = [
            call_site
            for source in self._explanations.sources(access)
            for call_site in self.flows.call_sites(source.scope.function)
            if call_site.call is source.expr
        ]
        several = [each for each in calls if runs(self.entry_states.processes(each)) is not Runs.ONE]
        if calls and not several:
            return Evidence.NONE
        return min((access.evidence, *(self._accesses.evidence.trace(each).evidence for each in several)))

    def statistics(self) -> dict[str, int]:
        """Return the number of linked and of unresolved items."""
        return self.flows.counts()
