"""Arguments of calls, by the names in the library models or by parameters."""

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
    """Return an argument of a call of a library function.

    Args:
        call: The call.
        which: The argument, as in the library models: `position:keyword`. Empty for none.

    Returns:
        The expression, an `Opaque` if `*args` or `**kwargs` may contain it, or None if not passed.
    """
    return _find(call, argument(which)) if which else None


def words(flags: m.Expr | None) -> Iterable[str]:
    """Yield the names of the flags in an expression such as `os.O_CREAT | os.O_EXCL`."""
    if isinstance(flags, m.Binary):
        yield from words(flags.left)
        yield from words(flags.right)
    elif isinstance(flags, (m.Name, m.Attribute)):
        yield last_name(flags)


def holds(flag: bool | str, call: m.Call) -> bool:  # noqa: FBT001  # as the library models write it
    """Return whether a flag of the library models is true for a call: always, or by an argument."""
    if isinstance(flag, bool):
        return flag
    values = [(which.default, _find(call, which)) for which in catalog_flags(flag)]
    return any(bool(default) if value is None else not _is_false(value) for default, value in values)


def _is_false(expr: m.Expr) -> bool:
    return isinstance(expr, m.Constant) and not expr.value


def arguments_of(call: m.Call) -> Iterator[tuple[int | None, str | None, m.Expr]]:
    """Yield the arguments of a call, each with its position or its keyword."""
    for position, value in enumerate(call.arguments):
        yield position, None, value
    for keyword in call.keywords:
        yield None, keyword.name, keyword.value


class BoundArguments(Record, frozen=True, eq=False):
    """The arguments of a call, bound to the parameters of a function of the project."""

    call: m.Call
    function: LinkedFunction

    def argument_for(self, parameter: m.Parameter) -> m.Expr | None:
        """Return the argument for a parameter.

        Args:
            parameter: The parameter. For the first parameter of a method, the argument is the receiver.

        Returns:
            The expression, an `Opaque` if `*args` or `**kwargs` may contain it, or None if the default is
            used.
        """
        name, names = parameter.name, self.function.positional
        return _find(self.call, ArgumentName(names.index(name) if name in names else None, name))

    def source_of(self, parameter: m.Parameter) -> m.Expr | None:
        """Return the argument for a parameter, or the `*args` that may contain it."""
        value = self.argument_for(parameter)
        spread = [each for each in self.call.arguments if isinstance(each, m.Starred)]
        return spread[0] if value == m.Opaque() and len(spread) == 1 else value

    def parameter_for(self, position: int | None, keyword: str | None) -> str | None:
        """Return the name of the parameter at a position or with a keyword, or None."""
        if position is None:
            return keyword
        return next(iter(self.function.positional[position:]), None)


def bind(call: m.Call, function: LinkedFunction) -> BoundArguments:
    """Bind the arguments of a call to the parameters of a function of the project."""
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
