"""Which functions may lead to what the catalog knows, by the calls in them.

Those who ask look closer at these, and find nothing in any other: a filter, which may let too many through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.program.modules import LinkedFunction


class _Everything:
    """Has whatever it is asked for."""

    def __contains__(self, _item: object) -> bool:
        return True


ALL: Final = _Everything()


class ReachingFunctions(Record, frozen=True):
    """The functions that lead there, and the last names of the calls by which they do."""

    functions: Container[LinkedFunction]
    names: Container[str]


def reaching_functions(propagation: EntryStates, kinds: Iterable[str], depth: int) -> ReachingFunctions:
    """Find the functions that may lead to a call of what the catalog knows.

    Args:
        propagation: Gives the ways into functions.
        kinds: The kinds of the catalog.
        depth: How many calls deep that is followed.

    Returns:
        The functions in which such a call stands, and those that call them, also by methods of
        base classes. Where few files are asked about, all: to find out takes longer than it saves.
    """
    if propagation.linker.asks_few:
        return ReachingFunctions(ALL, ALL)
    kinds = tuple(kinds)
    catalog = propagation.catalog
    known = propagation.mentions.names_of_library(n for kind in kinds for n in catalog.last_names[kind])
    names = set(known)
    found = dict.fromkeys(_calling(propagation, kinds, known))
    newest = list(found)
    unnamed = _calling_unnamed(propagation)
    for _ in range(depth):
        callers: dict[LinkedFunction, None] = {}
        for function in newest:
            for edge in propagation.callers(function):
                if not edge.passed_as_callback:
                    names.add(last_name(edge.event.call.function))
                    callers[edge.event.function] = None
            for event in unnamed.get(function, ()):
                names.add(last_name(event.call.function))
                callers[event.function] = None
        newest = [caller for caller in callers if caller not in found]
        found |= dict.fromkeys(newest)
    return ReachingFunctions(frozenset(found), frozenset(names))


def _calling(
    propagation: EntryStates, kinds: tuple[str, ...], known: frozenset[str]
) -> Iterator[LinkedFunction]:
    """Give the functions that call something of these kinds, or are decorated with it."""
    resolver, catalog = propagation.linker.resolver, propagation.catalog
    mentioning = {f: None for name in sorted(known) for f in propagation.mentions.calling(name)}
    for function in mentioning:
        for event in propagation.linker.call_sites(function):
            called = last_name(event.call.function)
            if called in known:
                entity = resolver.symbol(event.call.function, event.state.scope)
                if catalog.is_any(kinds, resolver.type_name(entity) or f"*.{called}"):
                    yield function
                    break
    yield from _decorated(propagation, known)


def _decorated(propagation: EntryStates, names: Container[str]) -> Iterator[LinkedFunction]:
    """Give the functions with a decorator that has one of these names; the code around them mentions it."""
    for module in propagation.linker.table.modules:
        for function in module.functions:
            if any(last_name(decorator) in names for decorator in function.facts.decorators):
                yield function


def _calling_unnamed(propagation: EntryStates) -> dict[LinkedFunction, list[CallSite]]:
    """Give the calls of the project's functions by no name, as in `(f or g)()`: they are no ways in."""
    found: dict[LinkedFunction, list[CallSite]] = {}
    for function in propagation.mentions.calling(""):
        for event in propagation.linker.call_sites(function):
            called = event.call.function
            if not isinstance(called, (m.Name, m.Attribute, m.Lambda)):
                callee = propagation.linker.resolver.callee(event.call, event.state.scope)
                if callee is not None:
                    found.setdefault(callee, []).append(event)
    return found
