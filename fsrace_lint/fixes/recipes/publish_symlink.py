"""Create or replace a symbolic link atomically."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.arguments import calling, needed, refuse_other
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver, refuse_foreign
from fsrace_lint.fixes.coordination import own_helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit
from fsrace_lint.fixes.staging import publish
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Link under a unique name and rename the link, or call the function of the project."""
    call = target.call
    api, link = api_of(target), receiver(target)
    line = own_statement(target)
    if not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not a statement on its own line")
    if api == "os.symlink":
        refuse_other(call, 2, "src", "dst", "target_is_directory")
        source, link, is_method = needed(call, 0, "src"), needed(call, 1, "dst"), False
    elif is_path_method(api, "symlink_to") and link is not None:
        refuse_other(call, 1, "target", "target_is_directory")
        refuse_foreign(target, link)
        source, is_method = needed(call, 0, "target"), True
    else:
        raise RefusalError(f"`{api.removeprefix('*.')}` does not create a symbolic link")
    helper = own_helper(target, "publish_symlink")
    if helper is None:
        return publish(target, line, link, is_method=is_method)
    function, imports = helper
    arguments = [cst.Arg(source), cst.Arg(link)]
    return Change((TreeEdit(call, calling(function, arguments)),), imports)
