"""Let the first process alone do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.fixes.blocks import refuse_leaving, statement_of, under
from fsrace_lint.fixes.coordination import rank_test, refuse_collectives
from fsrace_lint.fixes.recipe import Change

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Put the statement that makes the call under the rank test of the file.

    Raises:
        RefusalError: It is no statement of its own, or all processes have to run it.
    """
    statement = statement_of(target)
    refuse_leaving(target, statement)
    refuse_collectives(target, statement)
    test, imports = rank_test(target)
    return Change((under(target, statement, test),), imports)
