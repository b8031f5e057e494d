"""Limit the time for which a lock is waited for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst

from fsrace_lint.fixes.arguments import argument, named, with_keyword
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_SECONDS: Final = "600"
_TAKING: Final = ("filelock.", "fasteners.", "portalocker.", "oslo_concurrency.")


def recipe(target: Target) -> Change:
    """Pass `timeout=`, after which the lock raises."""
    call = target.call
    meaning = target.tree.names.meaning(call.func) or ""
    last = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if not (meaning.startswith(_TAKING) or last == "acquire"):
        raise RefusalError("the lock is not known to take a timeout")
    given = argument(call, None, "timeout")
    seconds = cst.Integer(_SECONDS)
    if given is not None:
        return Change((put(given.value, seconds),))
    return Change(
        (TreeEdit(call, partial(with_keyword, added=named("timeout", seconds), newline=target.tree.newline)),)
    )
