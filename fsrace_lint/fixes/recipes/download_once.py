"""Download a file so that it appears whole, whoever comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst

from fsrace_lint.fixes.arguments import calling, needed, refuse_other
from fsrace_lint.fixes.blocks import refuse_unasked
from fsrace_lint.fixes.callee import called
from fsrace_lint.fixes.coordination import helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_DOWNLOADS: Final = {
    "urllib.request.urlretrieve": ("url", "filename"),
    "torch.hub.download_url_to_file": ("url", "dst", "progress"),
    "wget.download": ("url", "out", "bar"),
}
"""What they call the address, the file, and what the helper leaves out."""


def recipe(target: Target) -> Change:
    """Call `download_once` in place of the download."""
    call = target.call
    name = called(target.tree, call)
    if name not in _DOWNLOADS:
        raise RefusalError(f"{name.lstrip('.')} is not known to download one address to one file")
    if own_statement(target) is None:
        raise RefusalError("the result of the call is used")
    words = _DOWNLOADS[name]
    refuse_other(call, 2, *words)
    path = needed(call, 1, words[1])
    refuse_unasked(target, path)
    function, imports = helper(target, "download_once")
    arguments = [cst.Arg(needed(call, 0, words[0])), cst.Arg(path)]
    return Change((TreeEdit(call, calling(function, arguments)),), imports)
