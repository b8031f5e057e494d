"""Wrap `os.mkdir()` in a `try` that accepts an existing directory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import RefusalError, TreeEdit
from fsrace_lint.fixes.statements import Suite, enclosed, own_statement

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

_ERROR: Final = "FileExistsError"


def handle(target: Target, path: cst.BaseExpression) -> tuple[TreeEdit, tuple[str, ...]]:
    """Return the edit that wraps the call in a `try`, and the import lines that it needs.

    The call itself does not change. The handler evaluates the path a second time, so
    the path must be an expression that can be evaluated twice.
    """
    tree = target.tree
    again = repeated(path)
    if again is None:
        raise RefusalError(
            "the path may be bytes or empty, which `pathlib` treats differently, "
            "and it is not simple enough to evaluate twice"
        )
    line = own_statement(target)
    if line is None:
        raise RefusalError(
            "the path may be bytes or empty, which `pathlib` treats differently, "
            "and the call is not a statement on its own line"
        )
    if tree.names.knows(_ERROR):
        raise RefusalError(f"the name `{_ERROR}` has another meaning in this file")
    functions, imports = _os_path(target)
    test = cst.Call(func=cst.Attribute(functions, cst.Name("isdir")), args=[cst.Arg(again)])
    end = line.trailing_whitespace
    if _ends_file(tree, line):
        end = end.with_changes(newline=tree.newline)
    indent = tree.indent(line)
    return TreeEdit(line, partial(_handled, end=end, test=test, indent=indent, newline=tree.newline)), imports


def repeated(path: cst.BaseExpression) -> cst.BaseExpression | None:
    """Copy an expression without its layout, or return None if evaluating it twice may differ."""
    match path:
        case cst.Name(value=name):
            return cst.Name(name)
        case cst.SimpleString(value=literal) | cst.Integer(value=literal):
            return type(path)(literal)
        case cst.Attribute(value=owner, attr=attr):
            copied = repeated(owner)
            return None if copied is None else cst.Attribute(copied, cst.Name(attr.value))
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=key, star=None))]):
            copied, index = repeated(owner), _constant(key)
            if copied is not None and index is not None:
                return cst.Subscript(copied, [cst.SubscriptElement(cst.Index(index))])
    return None


def _constant(key: cst.BaseExpression) -> cst.BaseExpression | None:
    match key:
        case cst.SimpleString() | cst.Integer():
            return repeated(key)
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value=digits)):
            return cst.UnaryOperation(cst.Minus(), cst.Integer(digits))
    return None


def refuse_handled(target: Target) -> None:
    """Refuse a call whose FileExistsError is handled: the program may use it to find out who is first.

    Raises:
        RefusalError: A handler around the call names the exception.
    """
    inner: cst.CSTNode = target.call
    for node in target.tree.ancestors(target.call):
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            return
        if isinstance(node, cst.Try | cst.TryStar) and node.body is inner:
            kinds = [handler.type for handler in node.handlers if handler.type is not None]
            if any(m.findall(kind, m.Name(_ERROR)) for kind in kinds):
                raise RefusalError(f"an `except` clause around the call already handles `{_ERROR}`")
        inner = node


def _os_path(target: Target) -> tuple[cst.BaseExpression, tuple[str, ...]]:
    match target.call.func:
        case cst.Attribute(value=cst.Name(value=module)):
            return cst.Attribute(cst.Name(module), cst.Name("path")), ()
    return spell(target, "os", "path", "import os")


def _ends_file(tree: Tree, line: Suite) -> bool:
    """Check whether a line is the last one and has no line ending."""
    if tree.module.has_trailing_newline:
        return False  # without the whole file being spelled for each fix in it
    last = tree.text.count("\n") + 1
    return tree.span(line).end_line == last


def _handled(
    line: Suite, end: cst.TrailingWhitespace, test: cst.Call, indent: str | None, newline: cst.Newline
) -> cst.Try | cst.IndentedBlock:
    header = cst.TrailingWhitespace(newline=newline)

    def block(statement: cst.BaseStatement) -> cst.IndentedBlock:
        return cst.IndentedBlock(body=[statement], header=header, indent=indent)

    again = cst.SimpleStatementLine(body=[cst.Raise()], trailing_whitespace=header)
    other = cst.If(test=cst.UnaryOperation(cst.Not(), test), body=block(again))
    inner = cst.SimpleStatementLine(body=line.body, trailing_whitespace=end)
    handler = cst.ExceptHandler(type=cst.Name(_ERROR), body=block(other))
    return enclosed(line, cst.Try(body=block(inner), handlers=[handler]), indent, newline)
