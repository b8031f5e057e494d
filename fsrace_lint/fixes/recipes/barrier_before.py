"""Let all processes wait in front of the branch in which one of them acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.fixes.recipes.barrier import placed

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Change, Target


def recipe(target: Target) -> Change:
    """Put the barrier of the file in front of the branch of the rank test."""
    return placed(target, before=True)
