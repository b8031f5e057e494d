"""Rank tests under the default settings of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.callgraph.parameter_values import CallerRankTests
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, TOP
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.analysis.values.constants import ConstantReader, is_object
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Argument, Environment
    from fsrace_lint.analysis.values.constants import Values


class DefaultRankTests(CallerRankTests):
    """Evaluates rank tests as if each setting had its default.

    A parameter of a function without callers has the default in the code. An attribute of an unknown object,
    such as `args.folder`, is not set.
    """

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project; nothing is computed yet."""
        super().__init__(entry_states.flows, entry_states.rank_tests.callers)
        self._reader = _Defaults(self)

    def partition(self, test: m.Expr, scope: Environment, depth: int = 0) -> RankPartition:
        """Return how a condition divides the processes of a job."""
        found = super().partition(test, scope, depth)
        outcome = self._reader.outcome(test, scope) if found == UNPARTITIONED else None
        if outcome is None:
            return found
        return (TOP, BOTTOM) if outcome else (BOTTOM, TOP)


class _Defaults(ConstantReader):
    """Reads settings that nothing in the project sets."""

    def __init__(self, rank_tests: DefaultRankTests) -> None:
        self._rank_tests = rank_tests

    def passed(self, argument: Argument) -> Values:
        default = argument.parameter.default
        is_called = any(True for _ in self._rank_tests.callers.search(argument.function))
        return () if is_called or not isinstance(default, m.Constant) else (default.value,)

    def attribute(self, expr: m.Attribute, scope: Environment) -> Values:
        is_own = isinstance(expr.value, m.Name) and is_object(scope.function, expr.value.id)
        resolver = self._rank_tests.resolver
        is_known = self._rank_tests.known(expr, scope) or resolver.symbol(expr, scope)
        return () if is_own or is_known is not None else (None,)
