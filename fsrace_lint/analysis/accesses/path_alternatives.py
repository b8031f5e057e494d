"""Whether a part of a path is private on every way to an access, or equal on some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.callgraph.default_settings import DefaultRankTests
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, TOP
from fsrace_lint.analysis.paths.shared_ways import are_several
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import dotted, implied
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.analysis.callgraph.chain_constants import ChainConstants
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.paths.abstract_path import PathVariable
    from fsrace_lint.analysis.paths.shared_ways import Way
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_LOGIC: Final = (m.Not, m.Boolean)
_NAMES: Final = 4
"""The number of names that are followed from a test."""


class PathAlternatives:
    """Compares the conditions of the alternatives of a path with those of an access and of its callers."""

    def __init__(self, entry_states: EntryStates, constants: ChainConstants) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.entry_states = entry_states
        self.rank_tests = entry_states.rank_tests
        self.by_default = DefaultRankTests(entry_states)
        self._ways, self._constants = entry_states.paths.shared_ways, constants

    def are_private(
        self, variable: PathVariable, function: LinkedFunction, conditions: Sequence[PathCondition]
    ) -> bool:
        """Return whether a variable differs between the ranks on every way to an access.

        Args:
            variable: The variable.
            function: The function with the access.
            conditions: The tests before the access.
        """
        ways = self._ways.of(variable)
        return variable.rank_dependent and not any(
            self._is_shared(way, conditions) and self._is_passed(way, function) for way in ways
        )

    def is_private_by_default(self, variable: PathVariable) -> bool:
        """Return whether a variable differs between the ranks unless a setting says otherwise."""
        return variable.rank_dependent and all(
            any(
                self.by_default.partition(each.test, each.scope)[0 if each.truth else 1] == BOTTOM
                for each in way
            )
            for way in self._ways.of(variable)
        )

    def is_one_by_default(self, call_sites: Iterable[CallSite]) -> bool:
        """Return whether a call chain is taken, but not by several processes, unless a setting says so."""
        processes = TOP
        for each in (each for call_site in call_sites for each in call_site.state.conditions):
            processes &= self.by_default.partition(each.test, each.scope)[0 if each.truth else 1]
        return processes != BOTTOM and not are_several(processes)

    def _is_passed(self, way: Way, function: LinkedFunction) -> bool:
        """Return whether the constants of some caller allow a way."""
        own = tuple(each for each in way if each.scope.function is function)
        edges = self.entry_states.callers(function) if own else ()
        return not edges or not all(self._constants.feasibility(own, (edge,)).is_ruled_out for edge in edges)

    def _is_shared(self, way: Way, conditions: Sequence[PathCondition]) -> bool:
        """Return whether several ranks can take a way to an access with these conditions."""
        found = self._processes(conditions, way)
        return are_several(found) or (found != BOTTOM and not are_several(self._processes(conditions)))

    def _processes(self, conditions: Sequence[PathCondition], way: Way = ()) -> ProcessSet:
        """Return the processes that fulfill some conditions on a way."""
        processes = TOP
        for literal in conditions:
            test = self._assuming(way, Expression(literal.test, literal.scope))
            processes &= self.rank_tests.partition(test.expr, test.scope)[0 if literal.truth else 1]
        return processes

    def _assuming(self, way: Way, test: Expression, depth: int = 0) -> Expression:
        """Return a condition with the outcomes that a way decides, if their variables have not changed."""
        expr, scope = test.expr, test.scope
        for choice in way:
            for part, truth in implied(choice.test, truth=choice.truth):
                if expr == part and _is_unchanged(part, choice.scope, scope):
                    return Expression(m.Constant(truth), scope)
        match expr:
            case m.Not(value=value):
                return Expression(m.Not(self._assuming(way, Expression(value, scope), depth).expr), scope)
            case m.Boolean(operator=operator, values=values):
                found = (self._assuming(way, Expression(value, scope), depth).expr for value in values)
                return Expression(m.Boolean(operator, tuple(found)), scope)
            case m.Name():
                bound = self.rank_tests.known(expr, scope)
                if isinstance(bound, Expression) and isinstance(bound.expr, _LOGIC) and depth < _NAMES:
                    return self._assuming(way, bound, depth + 1)
        return test


def _is_unchanged(part: m.Expr, one: Environment, other: Environment) -> bool:
    """Return whether the variables of a condition have the same bindings at two points of a function."""
    names = {name for each in within(part) for name in (dotted(each),) if name is not None}
    return one.function is other.function and all(one.get(name) is other.get(name) for name in names)
