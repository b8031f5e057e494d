"""Objects that a rank check chooses: a saver on rank 0, and one that does nothing on the other ranks."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.analysis.dataflow.process_set import BOTTOM, TOP, ProcessSet
from fsrace_lint.analysis.values.abstract_values import Argument, ConditionalValue, Expression, Union
from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import query, recursive_query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.symbols import Instance
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.callgraph.parameter_values import CallerRankTests
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.symbols import Symbol

_DEEPEST: Final = 6
"""The number of names, choices, and factories that are followed from an object to where it is created."""


class _Method(NamedTuple):
    """A method that is called, and what its name resolves to."""

    name: str
    symbol: Symbol


class ChosenObjects:
    """Finds the processes in which a method call runs the method that the call graph finds for it."""

    def __init__(self, rank_tests: CallerRankTests) -> None:
        """Initialize for a project; nothing is computed yet."""
        self._rank_tests = rank_tests
        self._resolver = rank_tests.resolver
        self.budget = DepthBudget(_DEEPEST, CycleDetector())

    def processes(self, call_site: CallSite) -> ProcessSet:
        """Return the processes whose object has the method that a call resolves to.

        After `saver = Saver() if rank == 0 else NoOp()`, this is rank 0 for `saver.save()`.
        """
        called = call_site.call.function
        if isinstance(called, m.Attribute) and isinstance(called.value, (m.Name, m.Attribute)):
            return self._with_method(called, call_site.state.scope)
        return TOP

    @query
    def _with_method(self, called: m.Attribute, scope: Environment) -> ProcessSet:
        method = self._resolver.symbol(called, scope)
        bound = None if method is None else self._rank_tests.known(called.value, scope)
        if method is None or bound is None:
            return TOP
        return self._having(bound, _Method(called.name, method), 0) or TOP

    @recursive_query(beyond=TOP)
    def _having(self, bound: Binding, method: _Method, depth: int) -> ProcessSet:
        """Return the processes in which a value can be an object with the method."""
        match bound:
            case Expression(expr=m.Conditional(test=test, body=body, orelse=orelse), scope=scope):
                options = Expression(body, scope), Expression(orelse, scope)
                return self._chosen(Expression(test, scope), options, method, depth + 1)
            case ConditionalValue(test=tested, options=(then, otherwise)):
                return self._chosen(tested, (then, otherwise), method, depth + 1)
            case Union(options=options):
                return _joined(self._having(option, method, depth + 1) for option in options)
            case Argument():
                return _joined(
                    TOP if value is None else self._having(value, method, depth + 1)
                    for value in self._rank_tests.passed(bound)
                )
            case Expression(expr=m.Name() | m.Attribute() as expr, scope=scope):
                known = self._rank_tests.known(expr, scope)
                return TOP if known is None else self._having(known, method, depth + 1)
            case Expression(expr=m.Call() as call, scope=scope):
                factory = self._resolver.symbol(call.function, scope)
                if isinstance(factory, LinkedFunction) and not factory.facts.is_generator:
                    return self._returned(factory, method, depth + 1)
        return BOTTOM if self._lacks(bound, method) else TOP

    def _chosen(
        self, test: Expression, options: tuple[Binding, Binding], method: _Method, depth: int
    ) -> ProcessSet:
        """Return the processes in which the option that a test chooses has the method."""
        true, false = self._rank_tests.partition(test.expr, test.scope)
        then, otherwise = (self._having(option, method, depth) for option in options)
        return (true & then) | (false & otherwise)

    def _returned(self, factory: LinkedFunction, method: _Method, depth: int) -> ProcessSet:
        """Return the processes to which a function returns an object with the method."""
        if factory.is_stub or factory.overrides:
            return TOP
        ways = self._rank_tests.interpretation.exit_points(factory)
        return _joined(
            BOTTOM
            if way.value is None
            else way.state.processes & self._having(Expression(way.value, way.state.scope), method, depth)
            for way in ways
        )

    def _lacks(self, bound: Binding, method: _Method) -> bool:
        """Return whether a value is None, or an object of another class than the one of the method."""
        if not isinstance(bound, Expression):
            return False
        if isinstance(bound.expr, m.Constant):
            return True
        made = self._resolver.symbol(bound.expr, bound.scope)
        if not isinstance(made, Instance):
            return False
        owner = method.symbol.owner if isinstance(method.symbol, LinkedFunction) else None
        if owner is not None and isinstance(made.of, LinkedClass) and owner in made.of.ancestors():
            return False
        return self._resolver.symbol(m.Attribute(bound.expr, method.name), bound.scope) != method.symbol


def _joined(found: Iterable[ProcessSet]) -> ProcessSet:
    """Return the union of the processes of all ways; all processes if no way is known."""
    ways = list(found)
    return functools.reduce(operator.or_, ways) if ways else TOP
