"""What the names that statements bind are bound to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.values.abstract_values import (
    ContextResult,
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
    """Spell what a name is an element of, or what it was entered by."""
    match binding:
        case IterationElement(source=value) | ContextResult(source=value):
            return spell(value.expr)
        case _:
            return ""


def targets_of(target: m.Expr, binding: Binding) -> dict[str, Binding]:
    """Bind the names of a target to parts of one value; those of an unpacked value are unknown."""
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
        part: Binding = binding if isinstance(binding, (IterationElement, UnpackedPart)) else Unknown()
        if isinstance(binding, IterationElement) and binding.index is None:
            part = IterationElement(binding.source, index)
        found |= targets_of(item, part)
    return found


def assigned(target: m.Expr, value: m.Expr, scope: Environment) -> dict[str, Binding]:
    """Bind the names of a target as `target = value` does."""
    name = target_name(target)
    if name is not None:
        return {name: Expression(value, scope)}
    if isinstance(target, m.Sequence):
        if isinstance(value, m.Sequence) and len(value.items) == len(target.items):
            found: dict[str, Binding] = {}
            for inner, part in zip(target.items, value.items, strict=True):
                found.update(assigned(inner, part, scope))
            return found
        counted = not any(isinstance(item, m.Starred) for item in target.items)
        parts: dict[str, Binding] = {}
        for index, item in enumerate(target.items):
            flat = counted and not isinstance(item, m.Sequence)
            parts |= targets_of(item, UnpackedPart(Expression(value, scope), index if flat else None))
        return parts
    return dict.fromkeys(targets_of(target, Unknown()), Unknown())


def is_none(binding: Binding) -> bool:
    """Tell whether a name is bound to None, which stands for what comes later."""
    return isinstance(binding, Expression) and binding.expr == m.Constant(None)
