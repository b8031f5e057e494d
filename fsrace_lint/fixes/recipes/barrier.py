"""Let all processes wait behind the branch in which one of them acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.blocks import beside, enclosing_if, refuse_looked_up
from fsrace_lint.fixes.coordination import barrier_call
from fsrace_lint.fixes.recipe import Change

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Put the barrier of the file behind the branch of the rank test."""
    return placed(target, before=False)


def placed(target: Target, *, before: bool) -> Change:
    """Put the barrier of the file behind the branch of the rank test, or in front of it."""
    branch = enclosing_if(target)
    refuse_looked_up(target, branch)
    barrier, imports = barrier_call(target)
    return Change((beside(target, branch, cst.Expr(barrier), before=before),), imports)
