"""Remove the `if` around a call, or wrap the call in a `with`, and keep every comment."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import libcst as cst

from fsrace_lint.fixes.callee import only_puts_together, same_path
from fsrace_lint.fixes.nodes import comments
from fsrace_lint.fixes.recipe import RefusalError, TreeEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.fixes.recipe import Target

Suite = cst.SimpleStatementLine | cst.SimpleStatementSuite
_Block = TypeVar("_Block", cst.Try, cst.With)

_PRAGMA: Final = re.compile(r"#\s*(noqa|nosec|type:|pragma:|pylint:|pyright:|mypy:|fmt:|nosemgrep)")


def own_statement(target: Target) -> Suite | None:
    """Return the line that contains only the call, or None."""
    parents = target.tree.parents
    expression = parents[target.call]
    line = parents[expression]
    if isinstance(expression, cst.Expr) and isinstance(line, Suite) and len(line.body) == 1:
        return line
    return None


def unwrap(target: Target, tests: frozenset[str]) -> tuple[TreeEdit, ...]:
    """Remove an `if` that contains only the call and runs it if a check of the same path is false.

    `tests` are the last names of the functions whose check can be removed.
    """
    guard = _guard(target)
    if guard is None or not _is_plain(target, guard, tests):
        return ()
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


def enclosed(
    line: Suite, outer: _Block, indent: str | None, newline: cst.Newline
) -> _Block | cst.IndentedBlock:
    """Replace a line with the compound statement that was built from it."""
    if isinstance(line, cst.SimpleStatementLine):
        return outer.with_changes(leading_lines=line.leading_lines)
    header = cst.TrailingWhitespace(newline=newline)
    return cst.IndentedBlock(body=[outer], header=header, indent=indent)


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
    return None if isinstance(parents[guard], cst.If) else guard


def _is_plain(target: Target, guard: cst.If, tests: frozenset[str]) -> bool:
    test = _denied(guard.test)
    if not isinstance(test, cst.Call) or target.tree.span(test) != target.fix.check:
        return False
    function = test.func
    name = function.attr.value if isinstance(function, cst.Attribute) else target.tree.names.meaning(function)
    asked = name is not None and name.rpartition(".")[2] in tests
    return asked and same_path(target.tree, test, target.call) and only_puts_together(target.tree, test)


def _denied(test: cst.BaseExpression) -> cst.BaseExpression | None:
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return inner
        case cst.Comparison(
            left=inner, comparisons=[cst.ComparisonTarget(operator=operator, comparator=other)]
        ):
            is_false = isinstance(other, cst.Name) and other.value == "False"
            return inner if is_false and isinstance(operator, cst.Is | cst.Equal) else None
    return None


def _unwrapped(guard: cst.If, newline: cst.Newline) -> cst.SimpleStatementLine:
    block = guard.body
    header = cst.TrailingWhitespace()
    if isinstance(block, cst.SimpleStatementSuite):
        inner = cst.SimpleStatementLine(body=block.body, trailing_whitespace=block.trailing_whitespace)
    else:
        body = cst.ensure_type(block, cst.IndentedBlock)
        header, inner = body.header, cst.ensure_type(body.body[0], cst.SimpleStatementLine)
    kept = [cst.EmptyLine(comment=comment, newline=newline) for comment in comments(guard.test)]
    if header.comment is not None:
        marked = _marked(inner, header) if _PRAGMA.match(header.comment.value) else None
        if marked is None:
            kept.append(cst.EmptyLine(comment=header.comment, newline=header.newline))
        inner = marked or inner
    own = [line for line in inner.leading_lines if line.comment is not None]
    return inner.with_changes(leading_lines=[*guard.leading_lines, *kept, *own])


def _marked(inner: cst.SimpleStatementLine, mark: cst.TrailingWhitespace) -> cst.SimpleStatementLine | None:
    """Move a comment for tools to the line, unless the line already has a comment."""
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
    return enclosed(line, cst.With(items=[item], body=block), indent, newline)
