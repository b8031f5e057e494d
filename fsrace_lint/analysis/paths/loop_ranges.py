"""Iterables of loops that are equal for all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.paths.directory_listings import DirectoryListings, loop_yields
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from fsrace_lint.analysis.paths.rank_dependence import RankDependence
    from fsrace_lint.analysis.values.abstract_values import Environment, IterationElement

_COUNTING: Final = frozenset({"range", "itertools.count"})
_IN_ORDER: Final = _COUNTING | {"enumerate", "sorted", "reversed", "list"}


class LoopRanges:
    """Determines whether loops count, or iterate over a listing or a literal."""

    def __init__(self, rank_dependence: RankDependence) -> None:
        """Initialize with the rank dependence of a project."""
        self.rank_dependence = rank_dependence
        self.rank_tests = rank_dependence.rank_tests
        self.resolver = rank_dependence.resolver
        self._listings = DirectoryListings(self.rank_tests)

    def are_equal(self, element: IterationElement) -> bool:
        """Return whether each process iterates over the same elements in the same order."""
        iterable = element.source
        if element.index is None and self._is_equal(iterable):
            return True
        return self._counts(iterable.expr, iterable.scope, element.index)

    def is_in_order(self, iterable: m.Call, scope: Environment) -> bool:
        """Return whether calls with equal arguments yield equal elements in the same order."""
        name = self.resolver.qualify(iterable.function, scope) or ""
        return name in _IN_ORDER or loop_yields(self.resolver.catalog, name) == "numbers"

    def _counts(self, iterable: m.Expr, scope: Environment, index: int | None) -> bool:
        """Return whether the elements of an iterable, or their items `index`, are consecutive numbers."""
        while isinstance(iterable, m.Call):
            name = self.resolver.qualify(iterable.function, scope) or ""
            yields = loop_yields(self.resolver.catalog, name)
            if yields != "argument":
                counts = name in _COUNTING or yields == "numbers"
                return counts if index is None else name == "enumerate" and index == 0
            iterable = library_argument(iterable, "0:iterable") or m.Constant(None)
        return False

    def _is_equal(self, iterable: Expression) -> bool:
        """Return whether each process iterates over a literal, or over the listing of one directory."""
        if self._listings.is_listing(iterable.expr, iterable.scope):
            return not self.rank_dependence.origins(iterable.expr, iterable.scope)
        known = self.rank_tests.known(iterable.expr, iterable.scope)
        expr = known.expr if isinstance(known, Expression) else iterable.expr
        return isinstance(expr, m.Sequence) and all(isinstance(item, m.Constant) for item in expr.items)
