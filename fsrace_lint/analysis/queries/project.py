"""The facade that rules ask: one project, and what its files do."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.explanations import Reason
from fsrace_lint.analysis.queries.files import FileQueries
from fsrace_lint.analysis.queries.locks import LockQueries
from fsrace_lint.analysis.queries.ordering import OrderingQueries
from fsrace_lint.files.spans import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import Module

JUDGED_AT_CALLS: Final[frozenset[Op]] = frozenset({"write", "copy", "delete", "rename", "download"})
"""The operations that rules ask for with `exposed`, and not where they stand."""


class Project(FileQueries, LockQueries, OrderingQueries):
    """The linked project: every query that rules may ask, by topic in the classes it is made of."""

    def not_reported(self, reported: Container[Span]) -> Iterator[tuple[Access, Reason]]:
        """Give the sites of the files asked for that are no findings, and why.

        Args:
            reported: The calls at which rules found something.

        Yields:
            The sites, file by file in the order of the code, and what keeps them silent.
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
            return Reason("lock", f"{access.path_source} is a lock, or is locked once it is open")
        if reason.is_weak and access.op in JUDGED_AT_CALLS and self._accesses.is_parametric(access):
            call_site = self.entry_states.callers(access.call_site.function)[0].call_site
            place = Place(call_site.function.module.path, call_site.call.span)
            return Reason("callers", "its path is decided where it is called, and judged there", place)
        return reason

    def about(self, module: Module) -> Project:
        """Give the same project with one file to report on; what was linked is shared."""
        narrowed = copy.copy(self)
        narrowed.targets = (module,)
        return narrowed

    def statistics(self) -> dict[str, int]:
        """Count what was linked and what could not be resolved."""
        return self.flows.counts()
