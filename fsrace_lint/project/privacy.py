"""Whether a value differs from process to process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name, parts
from fsrace_lint.project.entities import is_property
from fsrace_lint.project.memo import Memo
from fsrace_lint.project.values import Either, Element, Entered, Selected, Unpacked, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.catalog import Catalog
    from fsrace_lint.project.guards import Guards
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.resolve import Resolver
    from fsrace_lint.project.states import Exit
    from fsrace_lint.project.values import Binding, Scope

# What is read from a file of one's own need not be: the step in a checkpoint is equal everywhere.
_READING: Final = frozenset(
    {"load", "loads", "safe_load", "read", "read_text", "read_bytes", "open", "load_state_dict"}
)


class Privacy:
    """Finds ranks, process ids and temporary names in values."""

    def __init__(
        self,
        resolver: Resolver,
        guards: Guards,
        catalog: Catalog,
        exits: Callable[[LinkedFunction], tuple[Exit, ...]],
    ) -> None:
        """Prepare for a project; `exits` gives the ways out of a function as far as they are known."""
        self.resolver = resolver
        self.guards = guards
        self.catalog = catalog
        self.exits = exits
        self._answers: Memo[tuple[int, int], bool] = Memo(unknown=False)
        self._kept: dict[tuple[int, int], tuple[m.Expr, Scope]] = {}

    def is_private(self, expr: m.Expr, scope: Scope) -> bool:
        """Tell whether the value of an expression differs from process to process.

        Args:
            expr: The expression.
            scope: The names as they stand where it is evaluated.

        Returns:
            True if a rank, a process id or the like is part of it.
        """
        key = (id(expr), id(scope))
        self._kept[key] = expr, scope
        return self._answers.get(key, lambda: self._find(expr, scope))

    def _find(self, expr: m.Expr, scope: Scope) -> bool:
        rank = self.guards.rank_scope(expr, scope)
        if rank is not None:
            return rank != "node"
        if isinstance(expr, (m.Name, m.Attribute)):
            binding = self.guards.known(expr, scope)
            if binding is not None:
                return self.is_private_binding(binding)
            if self.is_property(expr, scope) or self._is_source(expr, scope):
                return True
        elif isinstance(expr, m.Call):
            if self._is_source(expr.function, scope):
                return True
            if self.returned_by(self.resolver.callee(expr, scope)):
                return True
            if last_name(expr.function) in _READING:
                return False
        return any(self.is_private(part, scope) for part in parts(expr))

    def is_private_binding(self, binding: Binding) -> bool:
        """Tell whether what a name is bound to differs from process to process."""
        match binding:
            case Value(expr=expr, scope=scope):
                return self.is_private(expr, scope)
            case Unpacked() if parts := tuple(self.guards.parts(binding)):
                return any(self.is_private(*part) for part in parts)
            case Element(iterable=value) | Unpacked(whole=value) | Entered(context=value):
                return self.is_private(value.expr, value.scope)
            case Selected(then=then, otherwise=otherwise):
                return self.is_private_binding(then) or self.is_private_binding(otherwise)
            case Either(options=options):
                return any(self.is_private_binding(option) for option in options)
            case _:
                return False

    def is_property(self, expr: m.Expr, scope: Scope) -> bool:
        """Tell whether an attribute is a property that returns something private."""
        entity = self.resolver.entity(expr, scope) if isinstance(expr, m.Attribute) else None
        return is_property(entity) and self.returned_by(entity)

    def returned_by(self, function: LinkedFunction | None) -> bool:
        """Tell whether a function returns something private."""
        ways = () if function is None else self.exits(function)
        return any(way.value is not None and self.is_private(way.value, way.state.scope) for way in ways)

    def _is_source(self, expr: m.Expr, scope: Scope) -> bool:
        entry = self.catalog.find("private", self.resolver.qualify(expr, scope))
        return entry is not None and entry.scope != "node"
