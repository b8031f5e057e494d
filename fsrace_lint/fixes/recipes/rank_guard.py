"""Let the first process alone do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.fixes.blocks import is_used_below, refuse_leaving, statement_of, under
from fsrace_lint.fixes.coordination import rank_test, refuse_collectives
from fsrace_lint.fixes.recipe import Change, RefusalError

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Put the statement that makes the call under the rank test of the file.

    Raises:
        RefusalError: It is no statement of its own, all processes have to run it, or they
            use what it makes, for which they would have to wait.
    """
    if is_used_below(target):
        raise RefusalError("what it makes is used below, and the others would have to wait for it")
    return guarded(target)


def guarded(target: Target) -> Change:
    """Put the statement under the rank test, whoever uses what it makes."""
    statement = statement_of(target)
    refuse_leaving(target, statement)
    refuse_collectives(target, statement)
    test, imports = rank_test(target)
    return Change((under(target, statement, test),), imports)
