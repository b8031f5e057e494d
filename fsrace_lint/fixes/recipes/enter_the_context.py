"""Enter a context manager that is created but never used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from fsrace_lint.fixes.blocks import refuse_scattered, suite
from fsrace_lint.fixes.coordination import refuse_collectives
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, drop
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target


def recipe(target: Target) -> Change:
    """Wrap the statement after the call in a `with` statement."""
    tree = target.tree
    line = own_statement(target)
    block = None if line is None else tree.parents[line]
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(block, cst.IndentedBlock | cst.Module):
        raise RefusalError("the call is not a statement on its own line")
    body = list(block.body)
    below = body[body.index(line) + 1 :]
    if not below:
        raise RefusalError("no statement after the call could run in the context")
    following = below[0]
    refuse_scattered(target, following)
    refuse_collectives(target, following)
    indent, newline = tree.indent(line), tree.newline

    def entered(node: cst.BaseStatement) -> cst.With:
        inner = suite([node.with_changes(leading_lines=_comments_of(node))], indent, newline)
        header = line.trailing_whitespace
        context = cst.WithItem(target.call.with_changes(lpar=[], rpar=[]))
        inner = inner.with_changes(header=header.with_changes(newline=newline))
        return cst.With(items=[context], body=inner, leading_lines=line.leading_lines)

    return Change((drop(line), TreeEdit(following, entered)))


def _comments_of(node: cst.BaseStatement) -> list[cst.EmptyLine]:
    leading: list[cst.EmptyLine] = list(getattr(node, "leading_lines", ()))
    while leading and leading[0].comment is None:
        leading.pop(0)
    return leading
