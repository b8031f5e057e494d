"""Parse a file for fixing, or refuse it if libcst would crash or change unrelated bytes."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Final

import libcst as cst

from fsrace_lint.fixes.recipe import RefusalError
from fsrace_lint.fixes.tree import Tree

if TYPE_CHECKING:
    from fsrace_lint.files.source import Source

TOO_DEEP: Final = "the code is nested too deeply"
BOM: Final = b"\xef\xbb\xbf"
_LONGEST: Final = 500
"""Maximum number of operands in a chain."""


def read(source: Source) -> Tree:
    """Parse a whole file.

    Raises:
        RefusalError: The file cannot be fixed.
    """
    try:
        if is_endless(parsed(source.text)):
            raise RefusalError(TOO_DEEP)
        tree = Tree(source.text, source.newline)
    except RecursionError:
        raise RefusalError(TOO_DEEP) from None
    except (SyntaxError, ValueError, cst.ParserSyntaxError):
        raise RefusalError("libcst cannot parse the file") from None
    if "\f" in tree.module.default_indent:
        raise RefusalError("the indentation contains a form feed")
    if encoded(source, tree.module.code) != source.data:
        raise RefusalError("the file cannot be rewritten without changing unrelated bytes")
    return tree


def parsed(text: str) -> ast.Module:
    """Parse a text as Python does, without syntax warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def encoded(source: Source, text: str) -> bytes:
    """Encode a text as the source is encoded.

    Raises:
        RefusalError: The encoding cannot represent the text.
    """
    try:
        return (BOM if source.bom else b"") + text.encode(source.encoding)
    except UnicodeError:
        raise RefusalError(f"the file cannot be encoded as {source.encoding.upper()}") from None


def is_endless(module: ast.Module) -> bool:
    """Check whether libcst, which recurses for each operand, may overflow the stack and crash."""
    return any(
        (isinstance(node, ast.BoolOp) and len(node.values) > _LONGEST)
        or (isinstance(node, ast.BinOp) and _is_long(node))
        or (isinstance(node, ast.alias) and node.name.count(".") > _LONGEST)
        or (isinstance(node, ast.ImportFrom) and (node.module or "").count(".") > _LONGEST)
        for node in ast.walk(module)
    )


def _is_long(node: ast.expr) -> bool:
    """Check whether a chain of binary operators has too many operands."""
    for _ in range(_LONGEST):
        if not isinstance(node, ast.BinOp):
            return False
        node = node.left
    return True
