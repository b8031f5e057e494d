"""The bindings that statements create."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.values.abstract_values import (
    ContextResult,
    Derived,
    Environment,
    Expression,
    IterationElement,
    Unknown,
    UnpackedPart,
)
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.traversal import target_name
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from fsrace_lint.analysis.values.abstract_values import Binding


def source_of(binding: Binding) -> str:
    """Return the source of an iterable or a context manager that a name is bound from."""
    match binding:
        case IterationElement(source=value) | ContextResult(source=value):
            return spell(value.expr)
        case _:
            return ""


def targets_of(target: m.Expr, binding: Binding) -> dict[str, Binding]:
    """Return the bindings of the names in a target to a value or its items.

    The items are unknown unless the value is derived from an expression.
    """
    name = target_name(target)
    if name is not None:
        return {name: binding}
    inner = (
        target.items
        if isinstance(target, m.Sequence)
        else (target.value,)
        if isinstance(target, m.Starred)
        else ()
    )
    found: dict[str, Binding] = {}
    for index, item in enumerate(inner):
        part: Binding = binding if isinstance(binding, Derived) else Unknown()
        if isinstance(binding, (IterationElement, ContextResult)) and binding.index is None:
            part = type(binding)(binding.source, index)
        found |= targets_of(item, part)
    return found


def assigned(target: m.Expr, value: m.Expr, scope: Environment) -> dict[str, Binding]:
    """Return the bindings of the names in a target after `target = value`."""
    name = target_name(target)
    if name is not None:
        return {name: Expression(value, scope)}
    if isinstance(target, m.Sequence):
        if isinstance(value, m.Sequence) and len(value.items) == len(target.items):
            found: dict[str, Binding] = {}
            for inner, part in zip(target.items, value.items, strict=True):
                found.update(assigned(inner, part, scope))
            return found
        parts: dict[str, Binding] = {}
        counted = True  # up to a starred item
        for index, item in enumerate(target.items):
            counted = counted and not isinstance(item, m.Starred)
            flat = counted and not isinstance(item, m.Sequence)
            parts |= targets_of(item, UnpackedPart(Expression(value, scope), index if flat else None))
        return parts
    return dict.fromkeys(targets_of(target, Unknown()), Unknown())


def is_none(binding: Binding) -> bool:
    """Return whether a binding is None, the usual placeholder for a later value."""
    return isinstance(binding, Expression) and binding.expr == m.Constant(None)
