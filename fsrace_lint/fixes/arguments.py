"""Read and change the arguments of calls, and keep their layout."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst

from fsrace_lint import catalog
from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OPEN: Final = ("file", "mode", "buffering", "encoding", "errors", "newline")
"""The parameters of `open`."""
_SPACE: Final = cst.SimpleWhitespace(" ")
_NONE: Final = cst.SimpleWhitespace("")


def switch_on(
    call: cst.Call, keyword: str, position: int, newline: cst.Newline
) -> Callable[[cst.Call], cst.Call]:
    """Return the edit that sets `keyword`, which may also be passed by position (from 0), to True."""
    for index, argument in enumerate(call.args):
        if argument.star:
            raise RefusalError(f"the call has unpacked arguments, which may already set `{keyword}`")
        is_named = argument.keyword is not None and argument.keyword.value == keyword
        if not is_named and (argument.keyword is not None or index != position):
            continue
        match argument.value:
            case cst.Name(value="False") as false:
                return partial(_replaced, index=index, value=false.with_changes(value="True"))
            case cst.Name(value="True"):
                raise RefusalError(f"`{keyword}` is already `True`")
        raise RefusalError(f"`{keyword}` is set to an expression")
    return partial(with_keyword, added=named(keyword, cst.Name("True")), newline=newline)


def with_keyword(call: cst.Call, added: cst.Arg, newline: cst.Newline) -> cst.Call:
    """Append a keyword argument to a call."""
    if not call.args:
        return _with_only(call, added, newline)
    *others, last = call.args
    if not isinstance(last.comma, cst.Comma):
        added = added.with_changes(whitespace_after_arg=last.whitespace_after_arg)
        last = last.with_changes(whitespace_after_arg=_NONE, comma=cst.Comma(whitespace_after=_SPACE))
        return call.with_changes(args=[*others, last, added])
    before: cst.BaseParenthesizableWhitespace = _SPACE
    after = last.comma.whitespace_after
    opening = _line_start(call)
    if isinstance(after, cst.ParenthesizedWhitespace) and opening is not None:
        before = after.with_changes(indent=opening.indent, last_line=opening.last_line)
        after = _line_end(after, newline)
    last = last.with_changes(comma=last.comma.with_changes(whitespace_after=before))
    added = added.with_changes(comma=cst.Comma(whitespace_after=after))
    return call.with_changes(args=[*others, last, added])


def _with_only(call: cst.Call, added: cst.Arg, newline: cst.Newline) -> cst.Call:
    space = call.whitespace_before_args
    if isinstance(space, cst.ParenthesizedWhitespace):
        added = added.with_changes(whitespace_after_arg=_line_end(space, newline))
        deeper = cst.SimpleWhitespace(space.last_line.value + "    ")
        call = call.with_changes(whitespace_before_args=space.with_changes(last_line=deeper))
    return call.with_changes(args=[added])


def _line_end(space: cst.ParenthesizedWhitespace, newline: cst.Newline) -> cst.ParenthesizedWhitespace:
    return space.with_changes(first_line=cst.TrailingWhitespace(newline=newline), empty_lines=[])


def _line_start(call: cst.Call) -> cst.ParenthesizedWhitespace | None:
    commas = [argument.comma for argument in call.args[:-1]]
    spaces = [comma.whitespace_after for comma in commas if isinstance(comma, cst.Comma)]
    for space in [*reversed(spaces), call.whitespace_before_args]:
        if isinstance(space, cst.ParenthesizedWhitespace):
            return space
    return None


def _replaced(call: cst.Call, index: int, value: cst.Name) -> cst.Call:
    arguments = list(call.args)
    arguments[index] = arguments[index].with_changes(value=value)
    return call.with_changes(args=arguments)


def argument(call: cst.Call, position: int | None, *keywords: str) -> cst.Arg | None:
    """Find an argument that may be passed by position (from 0) or by keyword.

    Raises:
        RefusalError: Unpacked arguments may contain it.
    """
    for index, given in enumerate(call.args):
        if given.star:
            raise RefusalError("the call has unpacked arguments, whose contents are unknown")
        if given.keyword is not None:
            if given.keyword.value in keywords:
                return given
        elif index == position:
            return given
    return None


def needed(call: cst.Call, position: int | None, *keywords: str) -> cst.BaseExpression:
    """Return the value of an argument that must be passed.

    Raises:
        RefusalError: The call does not pass it.
    """
    found = argument(call, position, *keywords)
    if found is None:
        said = f"`{keywords[0]}`" if keywords[0] else f"argument {(position or 0) + 1}"
        raise RefusalError(f"the call does not pass {said}")
    return found.value


def named_by(call: cst.Call, text: str) -> cst.BaseExpression:
    """Return the value of an argument in the notation of the library models, such as `1:path`.

    Raises:
        RefusalError: The call does not pass it.
    """
    which = catalog.argument(text)
    return needed(call, which.position, which.keyword or "")


def literal(call: cst.Call, text: str) -> str | None:
    """Return the text that an argument is, in the same notation, or None if it is not a literal."""
    which = catalog.argument(text)
    given = argument(call, which.position, which.keyword or "")
    if given is None:
        return which.default
    value = given.value.evaluated_value if isinstance(given.value, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def refuse_other(call: cst.Call, count: int, *keywords: str) -> None:
    """Refuse a call with more than `count` positional arguments, or with other keywords.

    Raises:
        RefusalError: The call has such an argument, which the fixed code would drop.
    """
    for index, given in enumerate(call.args):
        if given.keyword is None and index >= count:
            raise RefusalError("the call passes more positional arguments than its replacement accepts")
        if given.keyword is not None and given.keyword.value not in keywords:
            raise RefusalError(f"the replacement for the call does not accept `{given.keyword.value}`")


def named(name: str, value: cst.BaseExpression) -> cst.Arg:
    """Create a keyword argument."""
    equal = cst.AssignEqual(whitespace_before=_NONE, whitespace_after=_NONE)
    return cst.Arg(value, keyword=cst.Name(name), equal=equal)


def calling(function: cst.BaseExpression, arguments: Sequence[cst.Arg]) -> Callable[[cst.Call], cst.Call]:
    """Return the edit that replaces the function and the arguments of a call."""
    return lambda call: call.with_changes(func=function, args=arguments)
