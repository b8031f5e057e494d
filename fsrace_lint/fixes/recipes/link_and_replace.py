"""Create a link under a unique name, then rename it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.arguments import needed, refuse_other
from fsrace_lint.fixes.callee import api_of
from fsrace_lint.fixes.recipe import Change, RefusalError
from fsrace_lint.fixes.staging import publish
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Create the link with `os.symlink()` under a unique name in the same directory, then `os.replace()` it.

    `os.fsdecode()` converts the path to text if it may be bytes or a path object.
    """
    call, line = target.call, own_statement(target)
    if api_of(target) != "os.symlink" or not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not an `os.symlink()` statement on its own line")
    refuse_other(call, 2, "src", "dst", "target_is_directory")
    link = needed(call, 1, "dst")
    if not isinstance(link, cst.Name | cst.Attribute):
        raise RefusalError("the link path is not simple enough to evaluate twice")
    return publish(target, line, link, is_exact=True)
