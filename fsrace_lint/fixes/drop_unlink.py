"""Leave a lock file where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.recipe import Change, RefusalError, drop, put
from fsrace_lint.fixes.statements import own_statement
from fsrace_lint.fixes.tree import comments

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Take the statement out that deletes the lock file, with a block that holds nothing else."""
    parents = target.tree.parents
    line = own_statement(target)
    if not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not a statement of its own")
    if comments(line):
        raise RefusalError("a comment would be lost")
    block = parents[line]
    if not isinstance(block, cst.IndentedBlock) or len(block.body) > 1:
        return Change((drop(line),))
    around = parents[block]
    if isinstance(around, cst.With | cst.If) and _holds_nothing_else(around, parents[around]):
        if comments(around):
            raise RefusalError("a comment would be lost")
        return Change((drop(around),))
    return Change((put(line, line.with_changes(body=[cst.Pass()])),))


def _holds_nothing_else(around: cst.With | cst.If, outer: cst.CSTNode) -> bool:
    """Tell whether a block can go with its only statement: a test of the file, or its `suppress`."""
    if isinstance(around, cst.If) and around.orelse is not None:
        return False
    many = isinstance(outer, cst.IndentedBlock | cst.Module) and len(outer.body) > 1
    if isinstance(around, cst.If):
        return many
    names = [item.item.func for item in around.items if isinstance(item.item, cst.Call)]
    plain = [name.attr.value if isinstance(name, cst.Attribute) else "" for name in names]
    plain += [name.value for name in names if isinstance(name, cst.Name)]
    return many and "suppress" in plain and len(around.items) == 1
