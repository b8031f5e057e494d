"""Pass a function to a run-once helper, instead of the result of calling it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.nodes import comments
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Turn `run_once(f(x))` into `run_once(partial(f, x))`, and `run_once(f())` into `run_once(f)`."""
    given = [argument for argument in target.call.args if isinstance(argument.value, cst.Call)]
    first = target.call.args[0] if target.call.args else None
    if first is None or first.star or first not in given:
        raise RefusalError("the call that runs too early is not the first argument")
    inner = cst.ensure_type(first.value, cst.Call)
    if not inner.args:
        if comments(inner):
            raise RefusalError("a comment would be lost")
        return Change((put(inner, inner.func),))
    function, imports = spell(target, "functools", "partial", "import functools")
    return Change((TreeEdit(inner, partial(_later, function=function)),), imports)


def _later(call: cst.Call, function: cst.BaseExpression) -> cst.Call:
    space = cst.SimpleWhitespace(" ")
    first = cst.Arg(call.func, comma=cst.Comma(whitespace_after=space))
    return call.with_changes(func=function, args=[first, *call.args])
