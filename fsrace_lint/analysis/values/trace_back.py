"""From which expressions the value of a name may come."""

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
    """Trace what a name is bound to back to expressions, on each way to where it is read.

    Args:
        binding: The binding; None where nothing is known of the name.
        depth: How many steps were taken to get here; each choice between bindings is one.
        through: Which parts and results of a value lead back to it.

    Yields:
        Each expression with the steps to it; None for it where the value may come from something else.
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
    """Give the expressions that what a name is bound to may come from, as far as they are known."""
    return [value for value, _ in sources(binding) if value is not None]


def sides_of(value: Expression) -> tuple[Expression, ...]:
    """Give the two values of which a conditional expression is one; of any other expression nothing."""
    if not isinstance(value.expr, m.Conditional):
        return ()
    return Expression(value.expr.body, value.scope), Expression(value.expr.orelse, value.scope)
