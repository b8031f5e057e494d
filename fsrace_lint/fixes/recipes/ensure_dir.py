"""Make the creation of a directory tolerate stale answers of a network filesystem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.arguments import argument, calling, named, needed
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.coordination import own_helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Replace `makedirs()`, or `mkdir(parents=True)`, with `ensure_dir()`."""
    call = target.call
    api, path = api_of(target), receiver(target)
    if own_statement(target) is None:
        raise RefusalError("the result of the call is used, or the call is not on its own line")
    if api == "os.makedirs":
        path, mode = needed(call, 0, "name"), argument(call, 1, "mode")
    elif is_path_method(api, "mkdir") and path is not None:
        parents = argument(call, 1, "parents")
        if parents is None or not (isinstance(parents.value, cst.Name) and parents.value.value == "True"):
            raise RefusalError("`mkdir` does not create parent directories here, and `ensure_dir` would")
        mode = argument(call, 0, "mode")
    else:
        raise RefusalError(
            f"`{api.removeprefix('*.')}` does not create parent directories, and `ensure_dir` would"
        )
    helper = own_helper(target, "ensure_dir")
    if helper is None:
        raise RefusalError("to retry on stale NFS answers, the fix needs the `helper-module` setting")
    function, imports = helper
    arguments = [cst.Arg(path), *([] if mode is None else [named("mode", mode.value)])]
    return Change((TreeEdit(call, calling(function, arguments)),), imports)
