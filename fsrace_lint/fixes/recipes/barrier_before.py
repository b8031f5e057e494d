"""Add a barrier before the branch that runs on one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.fixes.recipes.barrier import placed

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Change, Target


def recipe(target: Target) -> Change:
    """Add a barrier before the branch of the rank check."""
    return placed(target, before=True)
