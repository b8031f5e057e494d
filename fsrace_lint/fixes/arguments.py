"""Set a keyword of a call to True, and keep the way the call is laid out."""

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
    """Make the rewrite that sets `keyword` to True, which may also be given by position (from 0)."""
    for index, argument in enumerate(call.args):
        if argument.star:
            raise RefusalError(f"unpacked arguments may set {keyword} already")
        is_named = argument.keyword is not None and argument.keyword.value == keyword
        if not is_named and (argument.keyword is not None or index != position):
            continue
        match argument.value:
            case cst.Name(value="False") as false:
                return partial(_replaced, index=index, value=false.with_changes(value="True"))
            case cst.Name(value="True"):
                raise RefusalError(f"{keyword} is True already")
        raise RefusalError(f"{keyword} is computed here")
    return partial(with_keyword, added=named(keyword, cst.Name("True")), newline=newline)


def with_keyword(call: cst.Call, added: cst.Arg, newline: cst.Newline) -> cst.Call:
    """Give a call with a keyword argument after its other arguments."""
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
    """Find an argument that may be given by position (from 0) or by one of some keywords.

    Raises:
        RefusalError: Unpacked arguments may hold it.
    """
    for index, given in enumerate(call.args):
        if given.star:
            raise RefusalError("unpacked arguments may hold more than is seen")
        if given.keyword is not None:
            if given.keyword.value in keywords:
                return given
        elif index == position:
            return given
    return None


def needed(call: cst.Call, position: int | None, *keywords: str) -> cst.BaseExpression:
    """Give the value of such an argument.

    Raises:
        RefusalError: It is not given.
    """
    found = argument(call, position, *keywords)
    if found is None:
        raise RefusalError(f"the call has no {keywords[0]}")
    return found.value


def named_by(call: cst.Call, text: str) -> cst.BaseExpression:
    """Give the value of the argument that the catalog writes so, as `1:path`.

    Raises:
        RefusalError: It is not given.
    """
    which = catalog.argument(text)
    return needed(call, which.position, which.keyword or "")


def refuse_other(call: cst.Call, count: int, *keywords: str) -> None:
    """Refuse a call that is given more than `count` arguments by position, or other keywords.

    Raises:
        RefusalError: It is; what that asks for would be lost.
    """
    for index, given in enumerate(call.args):
        if given.keyword is None and index >= count:
            raise RefusalError("the call is given more than the helper takes")
        if given.keyword is not None and given.keyword.value not in keywords:
            raise RefusalError(f"the helper takes no {given.keyword.value}")


def named(name: str, value: cst.BaseExpression) -> cst.Arg:
    """Make a keyword argument."""
    equal = cst.AssignEqual(whitespace_before=_NONE, whitespace_after=_NONE)
    return cst.Arg(value, keyword=cst.Name(name), equal=equal)


def calling(function: cst.BaseExpression, arguments: Sequence[cst.Arg]) -> Callable[[cst.Call], cst.Call]:
    """Make the rewrite that calls another function with other arguments."""
    return lambda call: call.with_changes(func=function, args=arguments)
