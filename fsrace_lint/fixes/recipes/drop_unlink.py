"""Stop deleting a lock file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.nodes import comments
from fsrace_lint.fixes.recipe import Change, RefusalError, drop, put
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Remove the statement that deletes the lock file, and its block if that contains nothing else."""
    parents = target.tree.parents
    line = own_statement(target)
    if not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not a statement on its own line")
    if comments(line):
        raise RefusalError("a comment would be lost")
    block = parents[line]
    if not isinstance(block, cst.IndentedBlock) or len(block.body) > 1:
        return Change((drop(line),))
    around = parents[block]
    if isinstance(around, cst.BaseCompoundStatement) and _is_for_it_alone(around, parents[around]):
        if comments(around):
            raise RefusalError("a comment would be lost")
        return Change((drop(around),))
    return Change((put(line, line.with_changes(body=[cst.Pass()])),))


def _is_for_it_alone(around: cst.BaseCompoundStatement, outer: cst.CSTNode) -> bool:
    """Check whether a block can be removed with its only statement: `if`, `suppress()`, or `except: pass`."""
    if not isinstance(outer, cst.IndentedBlock | cst.Module) or len(outer.body) == 1:
        return False
    match around:
        case cst.If(orelse=None):
            return True
        case cst.With(items=[cst.WithItem(item=cst.Call(func=function))]):
            return m.matches(function, m.Name("suppress") | m.Attribute(attr=m.Name("suppress")))
        case cst.Try(orelse=None, finalbody=None, handlers=handlers):
            passing = m.ExceptHandler(body=m.IndentedBlock([m.SimpleStatementLine([m.Pass()])]))
            return all(m.matches(handler, passing) for handler in handlers)
    return False
