"""Download a file once, and publish it only when it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.catalog import argument
from fsrace_lint.fixes.arguments import calling, named_by, refuse_other
from fsrace_lint.fixes.blocks import refuse_unasked
from fsrace_lint.fixes.callee import api_of
from fsrace_lint.fixes.coordination import helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Replace the download with `download_once()`."""
    call, api, effect = target.call, api_of(target), target.effect
    if effect is None or not effect.url:
        raise RefusalError(f"`{api.removeprefix('*.')}` is not known to download one URL to one file")
    if own_statement(target) is None:
        raise RefusalError("the result of the call is used, or the call is not on its own line")
    known = (argument(text).keyword for text in (effect.url, effect.path, effect.progress) if text)
    refuse_other(call, 2, *filter(None, known))
    path = named_by(call, effect.path)
    refuse_unasked(target, path)
    function, imports = helper(target, "download_once")
    arguments = [cst.Arg(named_by(call, effect.url)), cst.Arg(path)]
    return Change((TreeEdit(call, calling(function, arguments)),), imports)
