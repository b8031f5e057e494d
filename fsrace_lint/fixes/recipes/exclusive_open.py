"""Open a file with mode `x`, so that only one process creates it and the others get an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.arguments import needed
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.recipe import Change, RefusalError, put

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Change the mode `w` to `x` where FileExistsError is handled."""
    api = api_of(target)
    is_method = is_path_method(api, "open")
    if not is_method and api not in {"open", "io.open"}:
        raise RefusalError(f"`{api.removeprefix('*.')}` does not support exclusive creation (mode `x`)")
    target.refuse_before((3, 3), "mode `x`")
    mode = needed(target.call, 0 if is_method and receiver(target) is not None else 1, "mode")
    if not isinstance(mode, cst.SimpleString) or mode.evaluated_value not in {"w", "wb", "wt", "w+", "wb+"}:
        raise RefusalError("the file is not opened with a literal mode such as `w` or `wb`")
    changed = mode.with_changes(value=mode.value.replace("w", "x", 1))
    return Change((put(mode, changed),))
