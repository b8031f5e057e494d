"""What a call is given, by the argument that the catalog or a parameter names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.catalog import ArgumentName, argument
from fsrace_lint.catalog import flags as catalog_flags
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.program.modules import LinkedFunction


def library_argument(call: m.Call, which: str) -> m.Expr | None:
    """Find an argument of a call of a library's function.

    Args:
        call: The call.
        which: Which, as the catalog writes it: `position:keyword`; none if empty.

    Returns:
        Its expression; an Opaque where `*args` or `**kwargs` may hold it; None where it is not given.
    """
    return _find(call, argument(which)) if which else None


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
    values = [(which.default, _find(call, which)) for which in catalog_flags(flag)]
    return any(bool(default) if value is None else not _is_false(value) for default, value in values)


def _is_false(expr: m.Expr) -> bool:
    return isinstance(expr, m.Constant) and not expr.value


def arguments_of(call: m.Call) -> Iterator[tuple[int | None, str | None, m.Expr]]:
    """Give the arguments of a call, each with its position or its keyword."""
    for position, value in enumerate(call.arguments):
        yield position, None, value
    for keyword in call.keywords:
        yield None, keyword.name, keyword.value


class BoundArguments(Record, frozen=True, eq=False):
    """The arguments of a call beside the parameters of the project's function that it calls."""

    call: m.Call
    function: LinkedFunction

    def argument_for(self, parameter: m.Parameter) -> m.Expr | None:
        """Find what is passed for a parameter.

        Args:
            parameter: The parameter; for the object of a method that is what stands before the dot.

        Returns:
            Its expression; an Opaque where `*args` or `**kwargs` may hold it; None where the default is used.
        """
        name, names = parameter.name, self.function.positional
        return _find(self.call, ArgumentName(names.index(name) if name in names else None, name))

    def source_of(self, parameter: m.Parameter) -> m.Expr | None:
        """Find what is passed for a parameter, or the `*task` that is spread over it and others."""
        value = self.argument_for(parameter)
        spread = [each for each in self.call.arguments if isinstance(each, m.Starred)]
        return spread[0] if value == m.Opaque() and len(spread) == 1 else value

    def parameter_for(self, position: int | None, keyword: str | None) -> str | None:
        """Name the parameter that receives the argument at a position, or with a keyword."""
        if position is None:
            return keyword
        return next(iter(self.function.positional[position:]), None)


def bind(call: m.Call, function: LinkedFunction) -> BoundArguments:
    """Bind the arguments of a call to the parameters of the function of the project that it calls."""
    return BoundArguments(call, function)


def _find(call: m.Call, which: ArgumentName) -> m.Expr | None:
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
