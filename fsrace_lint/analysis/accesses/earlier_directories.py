"""Directories that exist before the functions that create them are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from fsrace_lint.analysis.callgraph.call_edges import CallEdge
from fsrace_lint.analysis.callgraph.parameter_values import value_passed
from fsrace_lint.analysis.dataflow.process_set import TOP
from fsrace_lint.analysis.paths.abstract_path import AbstractPath, PathVariable
from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import Module
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import unnegated
from fsrace_lint.syntax.identity import Identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.accesses.existence_checks import ExistenceChecks
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.paths.abstract_path import Piece
    from fsrace_lint.catalog import Op
    from fsrace_lint.program.modules import LinkedFunction

_CALLERS: Final = 3
"""The maximum number of calls from the function that creates a directory down to the access."""
_LEAVING: Final[frozenset[Op]] = frozenset({"mkdir", "write"})
"""The operations after which a path exists."""
_CHANGING: Final[frozenset[Op]] = _LEAVING | {"delete"}


class DirectAccesses(Protocol):
    """Finds the accesses of single calls, and the existence checks before them."""

    entry_states: EntryStates
    effects: Effects
    tests: ExistenceChecks

    def of_call(self, call_site: CallSite, /) -> Access | None:
        """Return the access that a call itself makes, or None if it changes nothing."""


class EarlierDirectories:
    """Finds what creates a directory earlier, in every process that comes to an access."""

    def __init__(self, accesses: DirectAccesses) -> None:
        """Initialize with the accesses of a project."""
        self.accesses = accesses
        self.entry_states = accesses.entry_states
        self.flows = accesses.entry_states.flows

    def of(self, access: Access) -> Access | None:
        """Return what creates the directory of an access before every call of its function, or None."""
        function = access.call_site.function
        if access.op != "mkdir" or access.path is None:
            return None
        if self._last_before(access.call_site, access.path)[1]:
            return None
        return self._before_calls(access.path, function, ())

    def creates(self, path: AbstractPath, call_site: CallSite) -> bool:
        """Return whether a directory is created before a call, in its function or before all calls of it."""
        found, is_deleted = self._last_before(call_site, path)
        if found is None and not is_deleted:
            found = self._before_calls(path, call_site.function, ())
        return found is not None

    def _before_calls(
        self, path: AbstractPath, function: LinkedFunction, below: tuple[LinkedFunction, ...]
    ) -> Access | None:
        """Return what creates a path when a module is imported, or before every call of a function of it.

        Args:
            path: The path.
            function: The function.
            below: The functions that it leads to. Their calls are later, so they do not count.
        """
        for module in self._imported_with(function) if function.index else ():
            for made in self._changes(module.code):
                always = not made.call_site.state.conditions and not made.call_site.loops
                if made.op in _LEAVING and always and _contains(made, path):
                    return made
        found, chain = None, (*below, function)
        edges = self.entry_states.callers(function) if len(below) < _CALLERS else ()
        for edge in (each for each in edges if each.call_site.function not in chain):
            found = self._before_edge(edge, path, function, chain)
            if found is None:
                break
        return found

    def _imported_with(self, function: LinkedFunction) -> Iterator[Module]:
        """Yield the module of a function, and those that it imports by their names."""
        here = function.module
        yield here
        for name in here.imports:
            imported = self.flows.resolver.member(here, name, 0)
            if isinstance(imported, Module):
                yield imported

    def _before_edge(
        self, edge: CallEdge, path: AbstractPath, function: LinkedFunction, chain: tuple[LinkedFunction, ...]
    ) -> Access | None:
        """Return what always creates a path of a callee before a call, in this function or before it."""
        seen = self._at_caller(path, edge, function)
        if seen is None:
            return None
        found, is_deleted = self._last_before(edge.call_site, seen)
        return found if found or is_deleted else self._before_calls(seen, edge.call_site.function, chain)

    def _last_before(self, call_site: CallSite, path: AbstractPath) -> tuple[Access | None, bool]:
        """Return what has always created a path before a call of its function, and whether it was deleted."""
        found, is_deleted = None, False
        for made in self._changes_before(call_site):
            if made.op == "delete" and _contains(made, path):
                found, is_deleted = None, True
            elif made.op in _LEAVING and self._is_always(made, call_site) and _contains(made, path):
                found, is_deleted = made, False
        return found, is_deleted

    def _is_always(self, made: Access, call_site: CallSite) -> bool:
        """Return whether a process that comes to a call has made an earlier access, or needed none."""
        at_call = iter(call_site.state.conditions)
        holds = all(each in at_call for each in self._conditions(Identity(made)))  # in this order
        return holds and call_site.loops[: len(made.call_site.loops)] == made.call_site.loops

    @query(provisional=())
    def _conditions(self, made: Identity[Access]) -> tuple[PathCondition, ...]:
        """Return the conditions before a creation, except those that only say that it is needed."""
        conditions = made.of.call_site.state.conditions
        return tuple(each for each in conditions if not self._is_needed(each, made.of))

    def _is_needed(self, literal: PathCondition, made: Access) -> bool:
        """Return whether a condition tests only whether there is a path, or whether it is missing."""
        test, truth = unnegated(literal.test, truth=literal.truth)
        match test:
            case m.Compare(left=path, operators=["is"], rights=[m.Constant(value=None)]) if not truth:
                pass
            case m.Compare(left=path, operators=["is not"], rights=[m.Constant(value=None)]) if truth:
                pass
            case _:
                path = test
        known = self.entry_states.paths.normalize(path, literal.scope)
        is_tested = known is not None and made.path is not None and made.path.is_within(known)
        if literal.attempt is None and is_tested:
            return truth or path is not test
        checks = self.accesses.tests.among([literal], made.call_site.call)
        return any(
            check.found_missing and check.is_whole_test and check.path == made.path for check in checks
        )

    def _changes_before(self, call_site: CallSite) -> Iterator[Access]:
        """Yield what a function changes before a call, also in the functions that it calls, in order."""
        direct = {made.call_site: made for made in self._changes(call_site.function)}
        for earlier in self.flows.call_sites_before(call_site):
            if earlier in direct:
                yield direct[earlier]
                continue
            callee = self.flows.resolver.callee(earlier.call, earlier.state.scope)
            if callee is None or self.entry_states.decorated(callee) != TOP:
                continue
            for made in self._changes(callee):
                if not self._conditions(Identity(made)) and not made.call_site.loops:
                    yield replace(made, call_site=earlier, path=self._seen_from(made, earlier, callee))

    def _seen_from(self, made: Access, call_site: CallSite, callee: LinkedFunction) -> AbstractPath | None:
        edge = CallEdge(call_site, passed_as_callback=False)
        return None if made.path is None else self._at_caller(made.path, edge, callee)

    def _at_caller(self, path: AbstractPath, edge: CallEdge, function: LinkedFunction) -> AbstractPath | None:
        """Return a path of a function with what a call passes in place of parameters and their attributes."""
        pieces: list[Piece] = []
        for piece in path.pieces():
            passed = self._passed(piece, edge, function) if isinstance(piece, PathVariable) else None
            if passed is None:
                pieces.append(piece)
                continue
            known = self.entry_states.paths.normalize(passed, edge.call_site.state.scope)
            if known is None:
                return None
            pieces.extend(known.pieces())
        return AbstractPath.of(pieces)

    def _passed(self, variable: PathVariable, edge: CallEdge, function: LinkedFunction) -> m.Expr | None:
        """Return what a call passes for a parameter, or the attribute of it that a variable stands for."""
        match variable.key:
            case ("attribute", (PathVariable() as base,), str(name)):
                owner = self._passed(base, edge, function)
                return None if owner is None else m.Attribute(owner, name)
        parameter = self.entry_states.paths.parameter_of(variable, function)
        if parameter is None:
            return None
        return value_passed(edge, parameter, function) or parameter.default or m.Opaque()

    @query(provisional=())
    def _changes(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Return the accesses in the code of a function itself that create or delete something."""
        if not self.flows.relevance.may_use(function, self.accesses.effects.names):
            return ()
        found = (self.accesses.of_call(call_site) for call_site in self.flows.call_sites(function))
        return tuple(each for each in found if each is not None and each.op in _CHANGING)


def _contains(made: Access, path: AbstractPath) -> bool:
    """Return whether a path exists once something in it is created, or no longer if it is deleted."""
    if made.op == "delete":
        return made.path is not None and path.is_within(made.path)
    return made.path is not None and made.path.is_within(path)
