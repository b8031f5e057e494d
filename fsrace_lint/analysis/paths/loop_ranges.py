"""What loops go over, where that is the same for all processes."""

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
    """Tells what loops count, and what they find or have written out."""

    def __init__(self, rank_dependence: RankDependence) -> None:
        """Prepare for a project in which `rank_dependence` tells what differs from process to process."""
        self.rank_dependence = rank_dependence
        self.rank_tests = rank_dependence.rank_tests
        self.resolver = rank_dependence.resolver
        self._listings = DirectoryListings(self.rank_tests)

    def are_equal(self, element: IterationElement) -> bool:
        """Tell whether each process goes over the same, and in the same order."""
        iterable = element.source
        if element.index is None and self._is_equal(iterable):
            return True
        return self._counts(iterable.expr, iterable.scope, element.index)

    def is_in_order(self, iterable: m.Call, scope: Environment) -> bool:
        """Whether what a call goes over is the same, and in the same order, for the same arguments."""
        name = self.resolver.qualify(iterable.function, scope) or ""
        return name in _IN_ORDER or loop_yields(self.resolver.catalog, name) == "numbers"

    def _counts(self, iterable: m.Expr, scope: Environment, index: int | None) -> bool:
        """Tell whether what a loop goes over is numbers that it counts, or its part `index` is."""
        while isinstance(iterable, m.Call):
            name = self.resolver.qualify(iterable.function, scope) or ""
            yields = loop_yields(self.resolver.catalog, name)
            if yields != "argument":
                counts = name in _COUNTING or yields == "numbers"
                return counts if index is None else name == "enumerate" and index == 0
            iterable = library_argument(iterable, "0:iterable") or m.Constant(None)
        return False

    def _is_equal(self, iterable: Expression) -> bool:
        """Tell whether each process goes over what is written out there, or found in one folder."""
        if self._listings.is_listing(iterable.expr, iterable.scope):
            return not self.rank_dependence.origins(iterable.expr, iterable.scope)
        known = self.rank_tests.known(iterable.expr, iterable.scope)
        expr = known.expr if isinstance(known, Expression) else iterable.expr
        return isinstance(expr, m.Sequence) and all(isinstance(item, m.Constant) for item in expr.items)
