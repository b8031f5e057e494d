"""Calls by which a program starts the other ranks itself, after one process has run its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.engine.query import query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 2
"""The maximum number of calls from a program down to the call that starts its ranks."""


class RankStarts:
    """Finds out what runs before the other ranks of a job exist."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows, self.catalog = flows, flows.catalog

    def after(self, chain: Iterable[CallSite]) -> Iterator[CallSite]:
        """Yield the calls that start the other ranks after one of the calls of a chain, in its function.

        These ranks find what the first process made before, because they run the same code later.
        """
        for call_site in chain:
            starts = self._starts(call_site.function, 0)
            first = next((each for each in starts if _are_on_one_way(each, call_site)), None)
            inside = self.flows.call_sites(call_site.function) if first is not None else ()
            if first is not None and inside.index(first) > inside.index(call_site):
                yield first

    @query(provisional=())
    def _starts(self, function: LinkedFunction, depth: int) -> tuple[CallSite, ...]:
        """Return the calls in a function that start the other ranks, directly or in callees."""
        return tuple(self._find(function, depth))

    def _find(self, function: LinkedFunction, depth: int) -> Iterator[CallSite]:
        resolver = self.flows.resolver
        for call_site in self.flows.call_sites(function):
            entity = resolver.symbol(call_site.call.function, call_site.state.scope)
            callee = resolver.callee(call_site.call, call_site.state.scope)
            starts = self.catalog.find("rerun", resolver.type_name(entity)) is not None
            if starts or (callee is not None and depth < _DEEPEST and self._starts(callee, depth + 1)):
                yield call_site


def _are_on_one_way(start: CallSite, call_site: CallSite) -> bool:
    """Return whether a process can pass both of two calls, and neither is repeated after the other."""
    exclusive = mutually_exclusive(start.state.conditions, call_site.state.conditions)
    return start is not call_site and not exclusive and not (start.loops and call_site.loops)
