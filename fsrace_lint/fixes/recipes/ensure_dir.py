"""Make the creation of a directory survive what a network filesystem remembers of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.arguments import argument, calling, named, needed
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.coordination import helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Call `ensure_dir` in place of `makedirs`, or of `mkdir` where that makes the parents too."""
    call = target.call
    api, path = api_of(target), receiver(target)
    if own_statement(target) is None:
        raise RefusalError("the result of the call is used")
    if api == "os.makedirs":
        path, mode = needed(call, 0, "name"), argument(call, 1, "mode")
    elif is_path_method(api, "mkdir") and path is not None:
        parents = argument(call, 1, "parents")
        if parents is None or not (isinstance(parents.value, cst.Name) and parents.value.value == "True"):
            raise RefusalError("mkdir makes one level here, and the helper would make the parents too")
        mode = argument(call, 0, "mode")
    else:
        raise RefusalError(f"{api.removeprefix('*.')} makes no more than one level")
    function, imports = helper(target, "ensure_dir")
    arguments = [cst.Arg(path), *([] if mode is None else [named("mode", mode.value)])]
    return Change((TreeEdit(call, calling(function, arguments)),), imports)
