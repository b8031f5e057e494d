"""Add a timeout to a lock."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst

from fsrace_lint import catalog
from fsrace_lint.fixes.arguments import argument, named, with_keyword
from fsrace_lint.fixes.callee import api_of
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_SECONDS: Final = "600"


def recipe(target: Target) -> Change:
    """Pass a timeout, after which acquiring the lock fails."""
    call = target.call
    entry = target.surroundings.entries().exact("lock", target.fix.api)
    if entry is None or not entry.timeout:
        raise RefusalError("the lock is not known to accept a timeout")
    api_of(target)
    which = catalog.argument(entry.timeout)
    keyword = which.keyword or "timeout"
    given = argument(call, which.position, keyword)
    seconds = cst.Integer(_SECONDS)
    if given is not None:
        return Change((put(given.value, seconds),))
    return Change(
        (TreeEdit(call, partial(with_keyword, added=named(keyword, seconds), newline=target.tree.newline)),)
    )
