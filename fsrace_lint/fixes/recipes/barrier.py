"""Add a barrier after the branch that runs on one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.fixes.blocks import beside, enclosing_if, refuse_looked_up
from fsrace_lint.fixes.coordination import barrier_line
from fsrace_lint.fixes.recipe import Change

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Add a barrier after the branch of the rank check."""
    return placed(target, before=False)


def placed(target: Target, *, before: bool) -> Change:
    """Add a barrier before or after the branch of the rank check."""
    branch = enclosing_if(target)
    refuse_looked_up(target, branch)
    barrier, imports = barrier_line(target)
    return Change((beside(target, branch, barrier, before=before),), imports)
