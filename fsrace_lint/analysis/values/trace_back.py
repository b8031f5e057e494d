"""The expressions that the value of a name may come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.values.abstract_values import Derived, Expression, Union
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.values.abstract_values import Binding


def sources(
    binding: Binding | None, depth: int = 0, through: type[Derived] | tuple[type[Derived], ...] = Derived
) -> Iterator[tuple[Expression | None, int]]:
    """Trace a binding back to expressions, on every path.

    Args:
        binding: The binding, or None if unknown.
        depth: The number of steps so far. Each union is one step.
        through: The derived values that are traced to their source.

    Yields:
        Each expression with the number of steps to it. The expression is None if the value may come from
        something else.
    """
    match binding:
        case Union(options=options):
            for option in options:
                yield from sources(option, depth + 1, through)
        case Expression():
            yield binding, depth
        case Derived(source=source) if isinstance(binding, through):
            yield source, depth
        case _:
            yield None, depth


def expressions_of(binding: Binding | None) -> list[Expression]:
    """Return the known expressions that a binding may come from."""
    return [value for value, _ in sources(binding) if value is not None]


def sides_of(value: Expression) -> tuple[Expression, ...]:
    """Return the two values of a conditional expression, or nothing for other expressions."""
    if not isinstance(value.expr, m.Conditional):
        return ()
    return Expression(value.expr.body, value.scope), Expression(value.expr.orelse, value.scope)
