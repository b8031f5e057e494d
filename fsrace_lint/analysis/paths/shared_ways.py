"""The conditions under which a value that can differ between ranks is equal on several of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.analysis.dataflow.abstract_state import PathCondition
from fsrace_lint.analysis.dataflow.infeasible_paths import feasible_exits
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, Runs, runs
from fsrace_lint.analysis.values.abstract_values import (
    ConditionalValue,
    ContextResult,
    Expression,
)
from fsrace_lint.analysis.values.assignment import is_none
from fsrace_lint.analysis.values.entered_values import entered_call
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import is_property
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.dataflow.abstract_state import ExitPoint
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.paths.abstract_path import PathVariable
    from fsrace_lint.analysis.paths.rank_dependence import RankDependence
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment

Way: TypeAlias = "tuple[PathCondition, ...]"
"""The choices that lead to one alternative of a value."""

_ALWAYS: Final[tuple[Way, ...]] = ((),)
_NEVER: Final[tuple[Way, ...]] = ()
_MOST: Final = 8
"""The number of alternatives that are kept."""


class SharedWays:
    """Finds the alternatives of values: `folder or mkdtemp()` is only private if `folder` is empty."""

    def __init__(self, rank_dependence: RankDependence) -> None:
        """Initialize with the rank dependence of a project."""
        self.rank_dependence = rank_dependence
        self.rank_tests = rank_dependence.rank_tests
        self.resolver = rank_dependence.resolver
        self.interpretation = rank_dependence.interpretation

    def of(self, variable: PathVariable) -> tuple[Way, ...]:
        """Return the ways on which several ranks have the same text for a variable that can differ."""
        return _NEVER if variable.definition is None else self._bound(variable.definition)

    def _bound(self, binding: Binding) -> tuple[Way, ...]:
        match binding:
            case Expression(expr=expr, scope=scope):
                return self._ways(expr, scope)
            case ConditionalValue(test=test, options=(then, otherwise)):
                return self._chosen(test, then, otherwise)
            case ContextResult():
                made = entered_call(self.resolver, binding)
                return _NEVER if made is None else self._ways(made.expr, made.scope)
            case _ if self.rank_dependence.origins_of(binding):
                return _NEVER
            case _:
                return _ALWAYS

    @query(provisional=_NEVER)
    def _ways(self, expr: m.Expr, scope: Environment) -> tuple[Way, ...]:
        if not self.rank_dependence.origins(expr, scope):
            return _ALWAYS
        if self.rank_tests.rank_scope(expr, scope) is not None:
            return _NEVER
        match expr:
            case m.Name() | m.Attribute():
                return self._variable(expr, scope)
            case m.Conditional(test=test, body=body, orelse=orelse):
                sides = Expression(body, scope), Expression(orelse, scope)
                return self._chosen(Expression(test, scope), *sides)
            case m.Boolean(operator="or", values=(value, *rest)):
                other = rest[0] if len(rest) == 1 else m.Boolean("or", tuple(rest))
                sides = Expression(value, scope), Expression(other, scope)
                return self._chosen(sides[0], *sides)
            case m.Call():
                exits = self._exits(expr, scope)
                return tuple(exits) if exits is not None else self._composed(expr, scope)
            case _:
                return self._composed(expr, scope)

    def _variable(self, expr: m.Name | m.Attribute, scope: Environment) -> tuple[Way, ...]:
        binding = self.rank_tests.known(expr, scope)
        if binding is not None:
            return self._bound(binding)
        entity = self.resolver.symbol(expr, scope) if isinstance(expr, m.Attribute) else None
        if is_property(entity):
            return tuple(self._of_exits(self.interpretation.result_points(entity)))
        return self._composed(expr, scope)

    def _chosen(self, test: Expression, then: Binding, otherwise: Binding) -> tuple[Way, ...]:
        """Return the ways of both alternatives; one that at most one process takes is left out."""
        splits = self.rank_tests.partition(test.expr, test.scope)
        found: list[Way] = []
        for option, processes, truth in zip((then, otherwise), splits, (True, False), strict=True):
            choice = PathCondition(test.expr, truth, test.scope)
            if are_several(processes) and not is_none(option):
                found += ((choice, *way) for way in self._bound(option))
        return tuple(found[:_MOST])

    def _composed(self, expr: m.Expr, scope: Environment) -> tuple[Way, ...]:
        """Return the ways of a value that is computed from others: all of them must be equal."""
        each = [self._ways(part, scope) for part in parts(expr)]
        if all(ways == _ALWAYS for ways in each):
            return _NEVER  # the value itself differs
        combined = itertools.islice(itertools.product(*each), _MOST)
        return tuple(tuple(itertools.chain.from_iterable(ways)) for ways in combined)

    def _exits(self, call: m.Call, scope: Environment) -> Iterator[Way] | None:
        """Return the ways by which a function of the project returns an equal value, or None for others."""
        callee = self.resolver.callee(call, scope)
        if callee is None:
            return None
        exits = self.interpretation.result_points(callee)
        if not any(self.rank_dependence.origins(way.value, way.state.scope) for way in exits if way.value):
            return None
        return self._of_exits(feasible_exits(call, scope, callee, exits))

    def _of_exits(self, exits: Iterable[ExitPoint]) -> Iterator[Way]:
        for point in exits:
            caught = any(each.attempt is not None and each.truth for each in point.state.conditions)
            if point.value is None or caught or not are_several(point.state.processes):
                continue
            for way in self._ways(point.value, point.state.scope):
                yield (*point.state.conditions, *way)


def are_several(processes: ProcessSet) -> bool:
    """Return whether several processes of a node are in a set."""
    return processes != BOTTOM and runs(processes) not in {Runs.ONE, Runs.PER_NODE}
