"""Values that come from a directory listing, which is equal for all processes that list it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import IterationElement
from fsrace_lint.analysis.values.trace_back import sources
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog import Catalog

_DEEPEST: Final = 16
_ARRANGING: Final = frozenset({"sorted", "list", "reversed", "set", "tuple"})
_TAKING: Final = frozenset({"pop", "popleft", "copy"})


def loop_yields(catalog: Catalog, name: str) -> str:
    """Return what a library iterator yields, according to its model. Empty for other calls."""
    entry = catalog.exact("iterator", name)
    return "" if entry is None else entry.yields


class DirectoryListings:
    """Traces names, slices, and sorted copies back to a directory listing."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Initialize with the rank checks of a project."""
        self.rank_tests = rank_tests
        self.resolver = rank_tests.resolver
        self.catalog = rank_tests.catalog

    def is_listing(self, expr: m.Expr, scope: Environment, depth: int = 0) -> bool:
        """Return whether an expression is a directory listing, or is derived from its entries."""
        if depth > _DEEPEST:
            return False
        match expr:
            case m.Name() | m.Attribute():
                traced = sources(self.rank_tests.known(expr, scope), depth + 2, through=IterationElement)
                return all(v is not None and self.is_listing(v.expr, v.scope, steps) for v, steps in traced)
            case m.Call(function=function, arguments=arguments):
                if self._lists(function, scope):
                    return True
                if isinstance(function, m.Attribute) and function.name in _TAKING:
                    return self.is_listing(function.value, scope, depth + 1)
                name = self.resolver.qualify(function, scope) or ""
                arranges = name in _ARRANGING or loop_yields(self.catalog, name) == "argument"
                return arranges and bool(arguments) and self.is_listing(arguments[0], scope, depth + 1)
            case m.Subscript(value=value):
                return self.is_listing(value, scope, depth + 1)
            case m.Comprehension(generators=(generator,)):
                return self.is_listing(generator.iterable, scope, depth + 1)
            case _:
                return False

    def _lists(self, function: m.Expr, scope: Environment) -> bool:
        name = self.resolver.qualify(function, scope) or f"*.{last_name(function)}"
        effect = self.catalog.find("effect", name)
        return effect is not None and effect.op == "list"
