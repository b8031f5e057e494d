"""The functions that may lead to calls in the catalog.

This is a filter for later analyses, which find nothing in other functions. It may accept too many.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from fsrace_lint.program.relevance import EVERYTHING
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.program.modules import LinkedFunction


class ReachingFunctions(Record, frozen=True):
    """The functions that may lead to such a call, and the last names of the calls in them that do."""

    functions: Container[LinkedFunction]
    names: Container[str]


def reaching_functions(entry_states: EntryStates, kinds: Iterable[str], depth: int) -> ReachingFunctions:
    """Find the functions that may lead to calls in the catalog.

    Args:
        entry_states: Provides the call edges.
        kinds: The kinds of catalog entries.
        depth: The maximum call depth.

    Returns:
        The functions with such calls and their callers, including calls through methods of base classes.
    """
    find = functools.partial(_find, entry_states, tuple(kinds), depth)
    return entry_states.relevance.filtered(find, ReachingFunctions(EVERYTHING, EVERYTHING))


def _find(entry_states: EntryStates, kinds: tuple[str, ...], depth: int) -> ReachingFunctions:
    catalog = entry_states.catalog
    known = entry_states.relevance.library_names(n for kind in kinds for n in catalog.last_names[kind])
    names = set(known)
    found = dict.fromkeys(_calling(entry_states, kinds, known))
    newest = list(found)
    unnamed = _calling_unnamed(entry_states)
    for _ in range(depth):
        callers: dict[LinkedFunction, None] = {}
        for function in newest:
            for edge in entry_states.callers(function):
                if not edge.passed_as_callback:
                    names.add(last_name(edge.call_site.call.function))
                    callers[edge.call_site.function] = None
            for call_site in unnamed.get(function, ()):
                names.add(last_name(call_site.call.function))
                callers[call_site.function] = None
        newest = [caller for caller in callers if caller not in found]
        found |= dict.fromkeys(newest)
    return ReachingFunctions(frozenset(found), frozenset(names))


def _calling(
    entry_states: EntryStates, kinds: tuple[str, ...], known: frozenset[str]
) -> Iterator[LinkedFunction]:
    """Yield the functions that call an API of these kinds, or are decorated with it."""
    resolver, catalog = entry_states.flows.resolver, entry_states.catalog
    using = {f: None for name in sorted(known) for f in entry_states.relevance.calling(name)}
    for function in using:
        for call_site in entry_states.flows.call_sites(function):
            called = last_name(call_site.call.function)
            if called in known:
                entity = resolver.symbol(call_site.call.function, call_site.state.scope)
                if catalog.is_any(kinds, resolver.type_name(entity) or f"*.{called}"):
                    yield function
                    break
    yield from _decorated(entry_states, known)


def _decorated(entry_states: EntryStates, names: Container[str]) -> Iterator[LinkedFunction]:
    """Yield the functions with a decorator that has one of these names."""
    for module in entry_states.flows.table.modules:
        for function in module.functions:
            if any(last_name(decorator) in names for decorator in function.facts.decorators):
                yield function


def _calling_unnamed(entry_states: EntryStates) -> dict[LinkedFunction, list[CallSite]]:
    """Return the calls of functions of the project without a name, such as `(f or g)()`, by callee.

    The call graph has no edges for them.
    """
    found: dict[LinkedFunction, list[CallSite]] = {}
    for function in entry_states.relevance.calling(""):
        for call_site in entry_states.flows.call_sites(function):
            called = call_site.call.function
            if not isinstance(called, (m.Name, m.Attribute, m.Lambda)):
                callee = entry_states.flows.resolver.callee(call_site.call, call_site.state.scope)
                if callee is not None:
                    found.setdefault(callee, []).append(call_site)
    return found
