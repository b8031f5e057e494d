"""Create or replace a symbolic link atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.arguments import calling, needed, refuse_other
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.coordination import helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Replace `symlink()` with `publish_symlink()`."""
    call = target.call
    api, link = api_of(target), receiver(target)
    if own_statement(target) is None:
        raise RefusalError("the call is not a statement on its own line")
    if api == "os.symlink":
        refuse_other(call, 2, "src", "dst", "target_is_directory")
        source, link = needed(call, 0, "src"), needed(call, 1, "dst")
    elif is_path_method(api, "symlink_to") and link is not None:
        refuse_other(call, 1, "target", "target_is_directory")
        source = needed(call, 0, "target")
    else:
        raise RefusalError(f"`{api.removeprefix('*.')}` does not create a symbolic link")
    function, imports = helper(target, "publish_symlink")
    arguments = [cst.Arg(source), cst.Arg(link)]
    return Change((TreeEdit(call, calling(function, arguments)),), imports)
