"""Rank checks before the process group is initialized, which are true on every rank."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.analysis.accesses.explanation_places import place_of
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import TOP, Runs, runs
from fsrace_lint.analysis.ranks.rank_sources import TRANSPARENT
from fsrace_lint.analysis.synchronization.model import TestBeforeInit
from fsrace_lint.analysis.values.abstract_values import ConditionalValue, Expression
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import as_function, is_property, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import as_attribute, last_name
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 12
_HELPERS_DEPTH: Final = 2
_CALLERS_DEPTH: Final = 3
_UNKNOWN: Final = object()
_COMPARING: Final[dict[str, Callable[[Any, Any], object]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.eq,
    "is not": operator.ne,
}


class BeforeInit:
    """Finds accesses after rank checks that are true on every rank before the process group exists."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = entry_states.catalog
        self._exists = False

    def vain_test(self, access: Access) -> TestBeforeInit | None:
        """Return the rank check before an access that every rank passes.

        Returns:
            The check. None if it works, if another check works, or if the process group may already exist.
        """
        call_site = access.call_site
        conditions = call_site.state.conditions
        vain = [literal for literal in conditions if self._is_passed_by_all(literal)]
        if not vain or self._reached_without(call_site, vain) != TOP:
            return None
        created = self._created_after(call_site, 0)
        if created is None or self.may_exist(call_site):
            return None
        test, creator = vain[-1], spell(created.call.function)
        return TestBeforeInit(access, spell(test.test), test.truth, creator, place_of(created))

    def is_vain(self, test: m.Expr, call_site: CallSite) -> bool:
        """Return whether all ranks would pass a check at a call, before the process group exists."""
        found = self._value(test, call_site.state.scope, 0)
        return found is not _UNKNOWN and bool(found) and self.is_too_early(call_site)

    def is_too_early(self, call_site: CallSite) -> bool:
        """Return whether the process group is initialized only after a call."""
        return not self.may_exist(call_site) and self._created_after(call_site, 0) is not None

    def holds_only_with_group(self, literal: PathCondition) -> bool:
        """Return whether a condition cannot hold before the process group exists."""
        found = self._value(literal.test, literal.scope, 0)
        return found is not _UNKNOWN and bool(found) != literal.truth

    def asks_for_the_group(self, literal: PathCondition) -> bool:
        """Return whether the result of a condition changes once the process group exists."""
        without = self._value(literal.test, literal.scope, 0)
        self._exists = True
        there = self._value(literal.test, literal.scope, 0)
        self._exists = False
        return without is not _UNKNOWN and without != there

    def _is_passed_by_all(self, literal: PathCondition) -> bool:
        """Return whether a condition is a rank check that is true on every rank without a process group."""
        if runs(self.entry_states.deciding(literal)) not in {Runs.ONE, Runs.PER_NODE}:
            return False
        found = self._value(literal.test, literal.scope, 0)
        return found is not _UNKNOWN and bool(found) == literal.truth

    def _reached_without(self, call_site: CallSite, vain: list[PathCondition]) -> int:
        """Return the ranks that reach a call if some of its checks are true on every rank.

        The result is 0 if something other than conditions also selects ranks.
        """
        every, others = TOP, TOP
        for literal in call_site.state.conditions:
            decided = self.entry_states.deciding(literal)
            every &= decided
            others &= TOP if literal in vain else decided
        function = call_site.function
        alone = self.entry_states.decorated(function) & self.entry_states.entry_state(function).processes
        return others & alone if every == self.entry_states.processes(call_site) else 0

    def _created_after(self, call_site: CallSite, depth: int) -> CallSite | None:
        """Return a later call that initializes the process group, or None.

        It is in the same function, or in all callers.
        """
        call_sites = self.flows.call_sites(call_site.function)
        for later in call_sites[call_sites.index(call_site) + 1 :]:
            if self._creates(later, 0) and not mutually_exclusive(
                later.state.conditions, call_site.state.conditions
            ):
                return later
        edges = self.entry_states.callers(call_site.function) if depth < _CALLERS_DEPTH else ()
        if not edges or any(edge.passed_as_callback for edge in edges):
            return None
        created = [self._created_after(edge.call_site, depth + 1) for edge in edges]
        return created[0] if all(call is not None for call in created) else None

    def may_exist(self, call_site: CallSite, depth: int = 0) -> bool:
        """Return whether an earlier call, here or in a caller, may have initialized the process group."""
        call_sites = self.flows.call_sites(call_site.function)
        if any(self._may_create(earlier, 0) for earlier in call_sites[: call_sites.index(call_site)]):
            return True
        owner = call_site.function.owner
        create = None if owner is None else owner.methods.get("__init__")
        if create is not None and create is not call_site.function and self._may_create_in(create, 0):
            return True
        edges = self.entry_states.callers(call_site.function) if depth < _CALLERS_DEPTH else ()
        return any(self.may_exist(edge.call_site, depth + 1) for edge in edges if edge.spawn is None)

    def _may_create(self, call_site: CallSite, depth: int) -> bool:
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        if self.catalog.find("launch", self.flows.resolver.type_name(entity)) is not None:
            return True
        callee = as_function(entity)
        return callee is not None and depth < _HELPERS_DEPTH and self._may_create_in(callee, depth + 1)

    @query
    def _may_create_in(self, function: LinkedFunction, depth: int) -> bool:
        call_sites = self.flows.call_sites(function)
        return any(self._may_create(call_site, depth) for call_site in call_sites)

    def _creates(self, call_site: CallSite, depth: int) -> bool:
        """Return whether a call initializes the process group, without a check for an existing group."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        launch = self.catalog.find("launch", self.flows.resolver.type_name(entity))
        if launch is not None:
            creates = bool(launch.creates_group)
        else:
            callee = as_function(entity)
            creates = callee is not None and depth < _HELPERS_DEPTH and self._creates_in(callee, depth + 1)
        return creates and not any(map(self.asks_for_the_group, call_site.state.conditions))

    @query
    def _creates_in(self, function: LinkedFunction, depth: int) -> bool:
        call_sites = self.flows.call_sites(function)
        return any(self._creates(call_site, depth) for call_site in call_sites)

    def _value(self, expr: m.Expr, scope: Environment, depth: int) -> object:  # one case per kind
        """Return the value of an expression before the process group exists, or `_UNKNOWN`."""
        if depth > _DEEPEST:
            return _UNKNOWN
        expr = as_attribute(expr)
        match expr:
            case m.Constant(value=value):
                return value
            case m.Not(value=value):
                inner = self._value(value, scope, depth + 1)
                return _UNKNOWN if inner is _UNKNOWN else not inner
            case m.Boolean(operator=joined, values=values):
                return _combined(joined, [self._value(value, scope, depth + 1) for value in values])
            case m.Conditional(test=test, body=body, orelse=orelse):
                chosen = self._value(test, scope, depth + 1)
                if chosen is _UNKNOWN:
                    return _UNKNOWN
                return self._value(body if chosen else orelse, scope, depth + 1)
            case m.Compare(left=left, operators=(sign,), rights=(right,)) if sign in _COMPARING:
                return _compared(
                    sign, self._value(left, scope, depth + 1), self._value(right, scope, depth + 1)
                )
            case m.Call(function=function, arguments=(inner_expr,)) if (
                self.flows.resolver.qualify(function, scope) in TRANSPARENT
            ):
                return self._value(inner_expr, scope, depth + 1)
            case m.Name() | m.Attribute() | m.Call():
                return self._asked(expr, scope, depth)
            case _:
                return _UNKNOWN

    def _asked(self, expr: m.Name | m.Attribute | m.Call, scope: Environment, depth: int) -> object:
        """Return the value of a name or a call, or `_UNKNOWN`."""
        known = None if isinstance(expr, m.Call) else self.entry_states.rank_tests.known(expr, scope)
        if known is not None:
            return self._bound(known, depth + 1)
        target = expr.function if isinstance(expr, m.Call) else expr
        entity = self.flows.resolver.symbol(target, scope)
        name = qualified_name(entity)
        for kind, answer in (("guard", True), ("rank", 0)):
            entry = self.catalog.find(kind, name)
            if entry is not None and entry.needs_group:
                return _UNKNOWN if self._exists else answer
        world = self.catalog.find("world", name)
        if world is not None and world.kind == "initialized":
            last = last_name(target)
            return self._exists if "initialized" in last else True if last == "is_available" else _UNKNOWN
        function = as_function(entity)
        if function is None or not (isinstance(expr, m.Call) or is_property(function)):
            return _UNKNOWN
        return self._returned(function, depth + 1)

    def _bound(self, binding: Binding, depth: int) -> object:
        match binding:
            case Expression(expr=expr, scope=scope):
                return self._value(expr, scope, depth)
            case ConditionalValue(test=test, options=(then, otherwise)):
                chosen = self._value(test.expr, test.scope, depth)
                return _UNKNOWN if chosen is _UNKNOWN else self._bound(then if chosen else otherwise, depth)
            case _:
                return _UNKNOWN

    def _returned(self, function: LinkedFunction, depth: int) -> object:
        """Return the result of a function before the process group exists, or `_UNKNOWN`."""
        if function.facts.is_generator:
            return _UNKNOWN
        for way in self.flows.exit_points(function):
            tests = [(self._value(test.test, test.scope, depth), test.truth) for test in way.state.conditions]
            if any(found is not _UNKNOWN and bool(found) != truth for found, truth in tests):
                continue
            if way.value is None or any(found is _UNKNOWN for found, _ in tests):
                return _UNKNOWN
            return self._value(way.value, way.state.scope, depth)
        return _UNKNOWN


def _combined(joined: str, values: list[object]) -> object:
    """Return the result of `and` or `or`. One operand can be enough to decide it."""
    decides = joined == "or"
    if any(value is not _UNKNOWN and bool(value) == decides for value in values):
        return decides
    return _UNKNOWN if _UNKNOWN in values else not decides


def _compared(sign: str, left: object, right: object) -> object:
    if _UNKNOWN in {left, right}:
        return _UNKNOWN
    try:
        return _COMPARING[sign](left, right)
    except TypeError:
        return _UNKNOWN
