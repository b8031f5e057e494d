"""Run a statement on rank 0 only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.fixes.blocks import is_used_below, refuse_leaving, refuse_long, statement_of, under
from fsrace_lint.fixes.coordination import rank_test, refuse_collectives
from fsrace_lint.fixes.recipe import Change, RefusalError

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Wrap the statement that makes the call in a rank check.

    Raises:
        RefusalError: The call is not its own statement, every rank must run it, or the other
            ranks use the result and would have to wait for it.
    """
    if is_used_below(target):
        raise RefusalError(
            f"`{target.fix.path}` is used after this statement, so the other ranks would have to wait for it"
        )
    return guarded(target)


def guarded(target: Target) -> Change:
    """Wrap the statement in a rank check, even if other ranks use the result."""
    statement = statement_of(target)
    refuse_long(target, statement)
    refuse_leaving(target, statement)
    refuse_collectives(target, statement)
    test, imports = rank_test(target)
    return Change((under(target, statement, test),), imports)
