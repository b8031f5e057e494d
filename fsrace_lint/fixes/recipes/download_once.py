"""Download a file once, and publish it only when it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.catalog import argument
from fsrace_lint.catalog.lexicon import meaning, words
from fsrace_lint.fixes.arguments import calling, named_by, refuse_other
from fsrace_lint.fixes.blocks import refuse_unasked
from fsrace_lint.fixes.callee import api_of
from fsrace_lint.fixes.coordination import own_helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit
from fsrace_lint.fixes.recipes import atomic_write
from fsrace_lint.fixes.staging import publish
from fsrace_lint.fixes.statements import own_statement
from fsrace_lint.fixes.text import is_parameter

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Download to a unique name and rename the file, or call the downloader of the project."""
    call, api, effect = target.call, api_of(target), target.effect
    if effect is not None and effect.single_file:
        return atomic_write.recipe(target)
    if effect is None or not effect.url:
        raise RefusalError(f"`{api.removeprefix('*.')}` is not known to download one URL to one file")
    line, path = own_statement(target), named_by(call, effect.path)
    if not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the result of the call is used, or the call is not on its own line")
    helper = own_helper(target, "download_once")
    if helper is None:
        if any(word in meaning("directory") for word in words(target.tree.module.code_for_node(path))[-1:]):
            raise RefusalError("the path may be a directory, in which the call chooses a file name")
        if target.fix.otherwise and not is_parameter(target.tree, path):
            # each run downloads it again, which is better done by one rank
            refuse_unasked(target, path)
        return publish(target, line, path)
    known = (argument(text).keyword for text in (effect.url, effect.path, effect.progress) if text)
    refuse_other(call, 2, *filter(None, known))
    refuse_unasked(target, path)
    function, imports = helper
    arguments = [cst.Arg(named_by(call, effect.url)), cst.Arg(path)]
    return Change((TreeEdit(call, calling(function, arguments)),), imports)
