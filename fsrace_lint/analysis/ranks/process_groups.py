"""Whether a call names a process group other than the group of all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.values.abstract_values import Argument
from fsrace_lint.catalog.lexicon import says
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import dotted, last_name

if TYPE_CHECKING:
    from fsrace_lint.analysis.values.abstract_values import Environment


def names_group(call: m.Call, scope: Environment) -> bool:
    """Return whether an argument of a call names a process group.

    Args:
        call: The call, such as `get_rank(group)` or `all_reduce(tensor, group=group)`.
        scope: The environment in which it is evaluated.

    Returns:
        Whether it does. False for the group of all processes, None, or a parameter whose default is None.
    """
    given = [(dotted(value) or last_name(value), value) for value in call.arguments]
    given += [(keyword.name or "", keyword.value) for keyword in call.keywords]
    return any(
        (says(name, "group") or says(last_name(value), "group")) and not _is_whole(value, scope)
        for name, value in given
    )


def _is_whole(group: m.Expr, scope: Environment) -> bool:
    bound = scope.get(group.id) if isinstance(group, m.Name) else None
    is_optional = isinstance(bound, Argument) and _is_none(bound.parameter.default)
    return is_optional or _is_none(group) or says(last_name(group), "whole group")


def _is_none(expr: m.Expr | None) -> bool:
    return isinstance(expr, m.Constant) and expr.value is None
