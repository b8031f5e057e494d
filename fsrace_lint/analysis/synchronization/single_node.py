"""Process groups that no process of a second node can join."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.engine.query import lazy
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog.entries import Launch
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 4
"""The number of names that are followed from an address to its text."""
_FROM_ENVIRONMENT: Final = "env://"
"""The address that means the environment variables."""
_LOOPBACK: Final = re.compile(r"(?:\w+://)?(?:127(?:\.\d+){3}|localhost|\[?::1\]?)(?![\w.])")


class SingleNode:
    """Finds the functions whose process group has processes of one node only."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project; nothing is computed yet."""
        self._entry_states = entry_states
        self._flows = entry_states.flows
        self._catalog = entry_states.catalog

    def holds(self, roots: Collection[LinkedFunction]) -> bool:
        """Return whether some functions without callers create process groups, but only of one node."""
        created = [(above, alone) for above, alone in self._groups if not above.isdisjoint(roots)]
        have_group = all(any(root in above for above, _ in created) for root in roots)
        return bool(created) and have_group and all(alone for _, alone in created)

    @lazy
    def _groups(self) -> tuple[tuple[frozenset[LinkedFunction], bool], ...]:
        """The functions that lead to each call that creates a group, and whether that is of one node."""
        entries = {name: self._catalog.exact("launch", name) for name in self._catalog.names("launch")}
        creating = {name: entry for name, entry in entries.items() if entry.rank and entry.address}
        relevance, found = self._entry_states.relevance, []
        names = relevance.library_names(name.rpartition(".")[2] for name in creating)
        for function in relevance.using(names):
            for call_site in self._flows.call_sites(function):
                name = self._flows.resolver.qualify(call_site.call.function, call_site.state.scope)
                if name is not None and name in creating:
                    above = self._entry_states.upward(function, self._entry_states.callers)
                    found.append((frozenset(above), self._is_of_one(call_site, creating[name])))
        return tuple(found)

    def _is_of_one(self, call_site: CallSite, entry: Launch) -> bool:
        """Return whether a group meets at an address of this machine, or its rank counts on one node."""
        rank, address = (library_argument(call_site.call, name) for name in (entry.rank, entry.address))
        scope = call_site.state.scope
        if rank is not None and self._entry_states.rank_tests.rank_scope(rank, scope) == "local":
            return True
        if address is not None and address != m.Constant(_FROM_ENVIRONMENT):
            return self._is_loopback(address, scope)
        return self._is_stored(call_site.function)

    def _is_stored(self, function: LinkedFunction) -> bool:
        """Return whether every way to a function passes one that stores an address of this machine."""
        callers = self._entry_states.callers

        def ways(each: LinkedFunction) -> tuple[CallEdge, ...]:
            return () if self._stores(each) else callers(each)

        above = self._entry_states.upward(function, ways)
        return all(self._stores(each) for each in above if not ways(each))

    def _stores(self, function: LinkedFunction) -> bool:
        return any(self._is_loopback(each.expr, each.scope) for each in self._addresses(function))

    def _addresses(self, function: LinkedFunction) -> Iterator[Expression]:
        """Yield the addresses that a function always stores in the environment."""
        scope = self._flows.final_environment(function)
        for each in () if scope is None else function.facts.body:
            if (
                isinstance(each, m.Assign)
                and each.value
                and scope
                and self._is_address(each.targets[0], scope)
            ):
                yield Expression(each.value, scope)

    def _is_address(self, target: m.Expr, scope: Environment) -> bool:
        if not isinstance(target, m.Subscript) or not isinstance(target.index, m.Constant):
            return False
        variable = self._catalog.exact("environment", str(target.index.value))
        is_address = variable is not None and variable.means == "address"
        return is_address and self._flows.resolver.qualify(target.value, scope) == "os.environ"

    def _is_loopback(self, expr: m.Expr, scope: Environment, depth: int = 0) -> bool:
        """Return whether an address is one of this machine, whichever caller passes it."""
        match expr:
            case m.Constant(value=str(text)):
                return _LOOPBACK.match(text) is not None
            case m.Format(parts=(first, *_)):
                return self._is_loopback(first, scope, depth)
            case m.Binary(operator="+" | "%", left=left):
                return self._is_loopback(left, scope, depth)
            case m.Call(function=m.Attribute(value=text, name="format")):
                return self._is_loopback(text, scope, depth)
            case m.Name() if depth < _DEEPEST:
                bound = self._entry_states.rank_tests.known(expr, scope)
                values = self._passed(bound) if isinstance(bound, Argument) else [bound]
                return bool(values) and all(
                    isinstance(value, Expression) and self._is_loopback(value.expr, value.scope, depth + 1)
                    for value in values
                )
            case _:
                return False

    def _passed(self, argument: Argument) -> list[Expression | None]:
        return list(self._entry_states.rank_tests.passed(argument))
