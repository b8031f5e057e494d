"""The values that `with` statements bind to names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.program.symbols import Instance
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.values.abstract_values import ContextResult
    from fsrace_lint.analysis.values.resolve import Resolver

_DEEPEST: Final = 4


def entered_values(resolver: Resolver, binding: ContextResult) -> tuple[Expression, ...]:
    """Return the values that `with context as name` binds, as far as the project defines the context.

    Args:
        resolver: Finds the context manager.
        binding: The binding of the name.

    Returns:
        What the generator yields, or what `__enter__` returns, in the environment of that function. Empty if
        unknown.
    """
    return tuple(
        Expression(item, value.scope)
        for context in _created(resolver, binding.source, 0)
        for value in _values(resolver, context)
        for item in _items(value.expr, binding.index)
    )


def entered_call(resolver: Resolver, binding: ContextResult) -> Expression | None:
    """Return the call of the generator function whose value `with context as name` binds, or None."""
    found = list(_created(resolver, binding.source, 0)) if binding.index is None else []
    return found[0] if len(found) == 1 and _generator(resolver, found[0]) is not None else None


def _created(resolver: Resolver, context: Expression, depth: int) -> Iterator[Expression]:
    """Yield the expressions that create a context, also by name or in a function that returns it."""
    expr, scope = context.expr, context.scope
    found: tuple[Expression, ...] = ()
    if isinstance(expr, m.Name):
        bound = resolver.binding(expr.id, scope)
        found = (bound,) if isinstance(bound, Expression) else ()
    elif isinstance(expr, m.Call):
        callee = resolver.symbol(expr.function, scope)
        if isinstance(callee, LinkedFunction) and not callee.facts.is_generator:
            found = resolver.interpretation.return_values(callee)
    if depth < _DEEPEST and found:
        for inner in found:
            yield from _created(resolver, inner, depth + 1)
    else:
        yield context


def _generator(resolver: Resolver, context: Expression) -> LinkedFunction | None:
    """Return the generator function that an expression calls, or None."""
    callee = (
        resolver.symbol(context.expr.function, context.scope) if isinstance(context.expr, m.Call) else None
    )
    return callee if isinstance(callee, LinkedFunction) and callee.facts.is_generator else None


def _values(resolver: Resolver, context: Expression) -> tuple[Expression, ...]:
    """Return what the generator that an expression calls yields, or what `__enter__` returns."""
    generator = _generator(resolver, context)
    if generator is not None:
        points = resolver.interpretation.yield_points(generator)
        return tuple(Expression(each.value, each.state.scope) for each in points if each.value is not None)
    entity = resolver.symbol(context.expr, context.scope)
    class_ = resolver.class_of(entity) if isinstance(entity, Instance) else None
    enter = None if class_ is None else class_.method("__enter__") or class_.method("__aenter__")
    return () if enter is None else resolver.interpretation.return_values(enter)


def _items(value: m.Expr, index: int | None) -> tuple[m.Expr, ...]:
    if index is None:
        return (value,)
    return value.items[index : index + 1] if isinstance(value, m.Sequence) else ()
