"""Remove the `if` around a call, or wrap the call in a `with`, and keep every comment."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.callee import only_puts_together
from fsrace_lint.fixes.nodes import comments
from fsrace_lint.fixes.recipe import RefusalError, TreeEdit
from fsrace_lint.fixes.tree import SCOPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

Suite = cst.SimpleStatementLine | cst.SimpleStatementSuite

_CHECKS: Final = frozenset({"exists", "lexists", "isdir", "is_dir", "isfile", "is_file"})
_PRAGMA: Final = re.compile(r"#\s*(noqa|nosec|type:|pragma:|pylint:|pyright:|mypy:|fmt:|nosemgrep)")


def leaving(tree: Tree, statement: cst.CSTNode) -> cst.CSTNode | None:
    """Return a `return`, `break`, or `continue` in a statement that leaves the statement."""
    for found in m.findall(statement, m.Return() | m.Break() | m.Continue()):
        kinds = SCOPES if isinstance(found, cst.Return) else (*SCOPES, cst.For, cst.While)
        left = next((node for node in tree.ancestors(found) if isinstance(node, kinds)), None)
        if left is None or left in tree.ancestors(statement):
            return found
    return None


def following(tree: Tree, statement: cst.CSTNode) -> Sequence[cst.CSTNode]:
    """Return the statements after a statement in its block."""
    block = tree.parents[statement]
    body: list[cst.CSTNode] = list(block.body) if isinstance(block, cst.IndentedBlock | cst.Module) else []
    return body[body.index(statement) + 1 :] if body else ()


def own_statement(target: Target) -> Suite | None:
    """Return the line that contains only the call, or None."""
    parents = target.tree.parents
    expression = parents[target.call]
    line = parents[expression]
    if isinstance(expression, cst.Expr) and isinstance(line, Suite) and len(line.body) == 1:
        return line
    return None


def unwrap(target: Target) -> tuple[TreeEdit, ...]:
    """Remove the existence check of the fix from the `if` around the call, if the block is only the call.

    The `if` goes too, unless it tests something else as well. There are no edits if the check stays.
    """
    guard = _guard(target)
    if guard is None:
        return ()
    if not _is_check(target, guard.test):
        rest = _without_check(target, guard.test)
        return () if rest is None else (TreeEdit(guard, partial(_tested, test=rest)),)
    if isinstance(target.tree.parents[guard], cst.If):
        return (TreeEdit(guard, _as_else),)
    return (TreeEdit(guard, partial(_unwrapped, newline=target.tree.newline)), *_footer_edits(target, guard))


def wrap(target: Target, manager: cst.BaseExpression, name: str = "") -> TreeEdit:
    """Wrap the call in a `with manager:` block, or `with manager as name:` if a name is given.

    Raises:
        RefusalError: The call is not a statement on its own line.
    """
    line = own_statement(target)
    if line is None:
        raise RefusalError("the call is not a statement on its own line")
    indent = target.tree.indent(line)
    item = cst.WithItem(manager, asname=cst.AsName(cst.Name(name)) if name else None)
    return TreeEdit(line, partial(_wrapped, item=item, indent=indent, newline=target.tree.newline))


def _guard(target: Target) -> cst.If | None:
    parents = target.tree.parents
    line = own_statement(target)
    if line is None:
        return None
    block: cst.CSTNode = line
    if isinstance(line, cst.SimpleStatementLine):
        block = parents[line]
        if not isinstance(block, cst.IndentedBlock) or len(block.body) != 1:
            return None
    guard = parents[block]
    if not isinstance(guard, cst.If) or guard.body is not block or guard.orelse is not None:
        return None
    return guard


def _is_check(target: Target, test: cst.BaseExpression) -> bool:
    """Check whether a test is the existence check of the fix, or its negation, without side effects."""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _is_check(target, inner)
        case cst.Comparison(
            left=inner,
            comparisons=[
                cst.ComparisonTarget(
                    operator=cst.Is() | cst.Equal(), comparator=cst.Name(value="False" | "True")
                )
            ],
        ):
            return _is_check(target, inner)
        case cst.Call():
            is_it = target.tree.span(test) == target.fix.check and _name(target, test.func) in _CHECKS
            return is_it and only_puts_together(target.tree, test)
    return False


def _name(target: Target, function: cst.BaseExpression) -> str:
    """Return the last name of a function. A function of the project that asks may do more."""
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return (target.tree.names.meaning(function) or "").rpartition(".")[2]


def _without_check(target: Target, test: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the rest of a condition, or None if the check is not a part of it.

    What follows the check must be free of calls, because it will run each time.
    """
    match test:
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            if _is_check(target, right):
                return _in_parentheses_of(test, left, target)
            if _is_check(target, left):
                calls = m.findall(right, m.Call() | m.Await() | m.NamedExpr() | m.Subscript())
                return None if calls else _in_parentheses_of(test, right, target)
            rest = None if m.findall(right, m.Call()) else _without_check(target, left)
            return None if rest is None else test.with_changes(left=rest)
    return None


def _in_parentheses_of(
    whole: cst.BaseExpression, part: cst.BaseExpression, target: Target
) -> cst.BaseExpression:
    """Keep the parentheses of a condition around a part of it if they hold lines together."""
    span = target.tree.span(whole)
    if span.line == span.end_line or not whole.lpar:
        return part
    return part.with_changes(lpar=[*whole.lpar, *part.lpar], rpar=[*part.rpar, *whole.rpar])


def _tested(guard: cst.If, test: cst.BaseExpression) -> cst.If:
    return guard.with_changes(test=test, whitespace_before_test=cst.SimpleWhitespace(" "))


def _as_else(guard: cst.If) -> cst.Else:
    return cst.Else(body=guard.body, leading_lines=guard.leading_lines)


def _unwrapped(guard: cst.If, newline: cst.Newline) -> cst.SimpleStatementLine | cst.With:
    block = guard.body
    header = cst.TrailingWhitespace()
    inner: cst.SimpleStatementLine | cst.With
    if isinstance(block, cst.SimpleStatementSuite):
        inner = cst.SimpleStatementLine(body=block.body, trailing_whitespace=block.trailing_whitespace)
    else:
        body = cst.ensure_type(block, cst.IndentedBlock)
        header, first = body.header, body.body[0]
        inner = first if isinstance(first, cst.With) else cst.ensure_type(first, cst.SimpleStatementLine)
    kept = [cst.EmptyLine(comment=comment, newline=newline) for comment in comments(guard.test)]
    if header.comment is not None:
        marked = _marked(inner, header) if _PRAGMA.match(header.comment.value) else None
        if marked is None:
            kept.append(cst.EmptyLine(comment=header.comment, newline=header.newline))
        inner = marked or inner
    own = [line for line in inner.leading_lines if line.comment is not None]
    return inner.with_changes(leading_lines=[*guard.leading_lines, *kept, *own])


def _marked(
    inner: cst.SimpleStatementLine | cst.With, mark: cst.TrailingWhitespace
) -> cst.SimpleStatementLine | cst.With | None:
    """Move a comment for tools to the line, unless the line already has a comment."""
    if isinstance(inner, cst.With):
        return inner.with_deep_changes(inner.body, header=mark)
    ending = inner.trailing_whitespace
    if ending.comment is not None:
        return None
    return inner.with_changes(trailing_whitespace=mark.with_changes(newline=ending.newline))


def _footer_edits(target: Target, guard: cst.If) -> Sequence[TreeEdit]:
    if not isinstance(guard.body, cst.IndentedBlock) or not guard.body.footer:
        return ()
    footer = guard.body.footer
    around = target.tree.parents[guard]
    siblings = around.body if isinstance(around, cst.Module | cst.IndentedBlock) else ()
    following = [*siblings[list(siblings).index(guard) + 1 :]]
    if following:
        return (
            TreeEdit(following[0], partial(_prepended, field="leading_lines", lines=footer), additive=True),
        )
    return (TreeEdit(around, partial(_prepended, field="footer", lines=footer), additive=True),)


def _prepended(node: cst.CSTNode, field: str, lines: Sequence[cst.EmptyLine]) -> cst.CSTNode:
    return node.with_changes(**{field: [*lines, *getattr(node, field)]})


def _wrapped(
    line: Suite, item: cst.WithItem, indent: str | None, newline: cst.Newline
) -> cst.With | cst.IndentedBlock:
    header = cst.TrailingWhitespace(newline=newline)
    inner = cst.SimpleStatementLine(body=line.body, trailing_whitespace=line.trailing_whitespace)
    block = cst.IndentedBlock(body=[inner], header=header, indent=indent)
    outer = cst.With(items=[item], body=block)
    if isinstance(line, cst.SimpleStatementLine):
        return outer.with_changes(leading_lines=line.leading_lines)
    return cst.IndentedBlock(body=[outer], header=header, indent=indent)
