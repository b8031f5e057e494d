"""Move a check into the lock: before the lock is held, the path may be incomplete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.blocks import is_asked_in
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, drop

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_LEAVING = (cst.Return, cst.Continue, cst.Break)


def recipe(target: Target) -> Change:
    """Move a check that is around the lock, or that exits before it, into the lock."""
    tree = target.tree
    lock = None
    for node in tree.ancestors(target.call):
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            break
        if isinstance(node, cst.With):
            lock = node
        if lock is not None and isinstance(node, cst.If) and is_asked_in(target, node.test):
            return _moved(target, node, lock)
    if lock is None:
        raise RefusalError("the lock is not held by a `with` statement around the call")
    return _brought_in(target, lock)


def _moved(target: Target, branch: cst.If, lock: cst.With) -> Change:
    """Turn a check around the lock into a check inside the lock."""
    block = branch.body
    if branch.orelse is not None or isinstance(target.tree.parents[branch], cst.If):
        raise RefusalError("the check is part of an `if`/`else` chain")
    if not isinstance(block, cst.IndentedBlock) or block.body[-1] is not lock:
        raise RefusalError("the locked block is not the last statement under the check")
    if not isinstance(lock.body, cst.IndentedBlock):
        raise RefusalError("the locked block is on the line of its `with` statement")

    def swapped(node: cst.If) -> cst.FlattenSentinel[cst.BaseStatement]:
        inner = cst.ensure_type(node.body, cst.IndentedBlock)
        *before, held = inner.body
        context = cst.ensure_type(held, cst.With)
        work = cst.ensure_type(context.body, cst.IndentedBlock)
        asked = node.with_changes(body=work.with_changes(header=inner.header), leading_lines=())
        body = inner.with_changes(body=[asked], header=work.header)
        leading = [] if before else node.leading_lines
        moved = context.with_changes(body=body, leading_lines=[*leading, *context.leading_lines])
        if before:
            before[0] = before[0].with_changes(
                leading_lines=[*node.leading_lines, *getattr(before[0], "leading_lines", ())]
            )
        return cst.FlattenSentinel([*before, moved])

    return Change((TreeEdit(branch, swapped),))


def _brought_in(target: Target, lock: cst.With) -> Change:
    """Move a check that exits early to the start of the locked block."""
    siblings = target.tree.parents[lock]
    body = siblings.body if isinstance(siblings, cst.IndentedBlock | cst.Module) else ()
    for statement in body:
        if statement is lock or not isinstance(lock.body, cst.IndentedBlock):
            break
        if isinstance(statement, cst.If) and is_asked_in(target, statement.test) and _only_leaves(statement):
            return Change((drop(statement), TreeEdit(lock.body, partial(_beginning, asked=statement))))
    raise RefusalError("the check is neither an `if` statement around the lock nor an early exit before it")


def _beginning(block: cst.IndentedBlock, asked: cst.If) -> cst.IndentedBlock:
    return block.with_changes(body=[asked, *block.body])


def _only_leaves(branch: cst.If) -> bool:
    """Check whether a branch only exits, so that it can be moved."""
    line = branch.body.body[0] if len(branch.body.body) == 1 else None
    small = line.body if isinstance(line, cst.SimpleStatementLine) else [line]
    return branch.orelse is None and len(small) == 1 and isinstance(small[0], _LEAVING)
