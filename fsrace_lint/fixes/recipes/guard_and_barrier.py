"""Run a statement on rank 0 only, and make the other ranks wait for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.fixes.blocks import beside, refuse_looked_up, statement_of
from fsrace_lint.fixes.coordination import barrier_line
from fsrace_lint.fixes.recipes import rank_guard

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Change, Target


def recipe(target: Target) -> Change:
    """Wrap the statement in a rank check, and add a barrier after it."""
    guarded = rank_guard.guarded(target)
    barrier, imports = barrier_line(target)
    statement = statement_of(target)
    refuse_looked_up(target, statement)
    waiting = beside(target, statement, barrier)
    return msgspec.structs.replace(
        guarded, edits=(*guarded.edits, waiting), imports=(*guarded.imports, *imports)
    )
