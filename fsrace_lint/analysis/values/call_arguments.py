"""What a call is given, by the argument that the catalog or a parameter names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.catalog import argument
from fsrace_lint.catalog import flags as catalog_flags
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.catalog import ArgumentName
    from fsrace_lint.program.modules import LinkedFunction


def given(call: m.Call, text: str) -> m.Expr | None:
    """Find an argument of a call.

    Args:
        call: The call.
        text: Which, as the catalog writes it: `position:keyword`.

    Returns:
        Its expression; an Opaque where `*args` or `**kwargs` may hold it; None where it is not given.
    """
    return given_for(call, argument(text))


def given_for(call: m.Call, which: ArgumentName) -> m.Expr | None:
    """Find an argument of a call, as `given` does."""
    if which.is_self:
        return call.function.value if isinstance(call.function, m.Attribute) else None
    for keyword in call.keywords:
        if keyword.name is not None and keyword.name == which.keyword:
            return keyword.value
    if which.position is not None:
        before = call.arguments[: which.position + 1]
        if any(isinstance(value, m.Starred) for value in before):
            return m.Opaque()
        if which.position < len(call.arguments):
            return call.arguments[which.position]
    return m.Opaque() if any(keyword.name is None for keyword in call.keywords) else None


def words(flags: m.Expr | None) -> Iterable[str]:
    """Name the flags of `os.O_CREAT | os.O_EXCL`."""
    if isinstance(flags, m.Binary):
        yield from words(flags.left)
        yield from words(flags.right)
    elif isinstance(flags, (m.Name, m.Attribute)):
        yield last_name(flags)


def holds(flag: bool | str, call: m.Call) -> bool:  # noqa: FBT001  # as the catalog writes it
    """Tell whether a call is so, by its nature or by one of its flags."""
    if isinstance(flag, bool):
        return flag
    values = [(which.default, given_for(call, which)) for which in catalog_flags(flag)]
    return any(bool(default) if value is None else not _is_false(value) for default, value in values)


def _is_false(expr: m.Expr) -> bool:
    return isinstance(expr, m.Constant) and not expr.value


def arguments_of(call: m.Call) -> Iterator[tuple[int | None, str | None, m.Expr]]:
    """Give the arguments of a call, each with its position or its keyword."""
    for position, value in enumerate(call.arguments):
        yield position, None, value
    for keyword in call.keywords:
        yield None, keyword.name, keyword.value


def passed(call: m.Call, parameter: m.Parameter, function: LinkedFunction) -> m.Expr | None:
    """Find what a call passes for a parameter of the function it calls.

    Args:
        call: The call.
        parameter: The parameter.
        function: The function called; for a method the object is passed unseen.

    Returns:
        The expression, or None where the default is used.
    """
    names = positional(function)
    position = ""
    if parameter.name in names:
        index = names.index(parameter.name) - (1 if function.takes_object else 0)
        position = str(index) if index >= 0 else ""
    return given(call, f"{position}:{parameter.name}")


def taken(call: m.Call, parameter: m.Parameter, function: LinkedFunction) -> m.Expr | None:
    """Find what a call passes for a parameter, or the `*task` that it spreads over it and others."""
    value = passed(call, parameter, function)
    spread = [each for each in call.arguments if isinstance(each, m.Starred)]
    return spread[0] if value == m.Opaque() and len(spread) == 1 else value


def received(function: LinkedFunction, position: int | None, keyword: str | None) -> str | None:
    """Name the parameter that receives an argument of a call."""
    if position is None:
        return keyword
    names = positional(function)
    index = position + (1 if function.takes_object else 0)
    return names[index] if index < len(names) else None


def positional(function: LinkedFunction) -> list[str]:
    """Name the parameters of a function that take positional arguments."""
    return [p.name for p in function.facts.parameters if p.kind == "positional"]
