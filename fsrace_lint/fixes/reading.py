"""Read a file for repair, or refuse it where libcst would not survive it, or not keep its bytes."""

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
"""How many parts a chain may have that the parser of Python takes for one node, or facts hold flat."""


def read(source: Source) -> Tree:
    """Parse a whole file.

    Raises:
        RefusalError: It cannot be repaired.
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
        raise RefusalError("a form feed stands in the indentation")
    if encoded(source, tree.module.code) != source.data:
        raise RefusalError("the file would not keep its bytes, so nothing in it is changed")
    return tree


def parsed(text: str) -> ast.Module:
    """Parse a text as Python does, without a word about what it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def encoded(source: Source, text: str) -> bytes:
    """Give the bytes of a text as those of a source are written.

    Raises:
        RefusalError: Its encoding has no bytes for it.
    """
    try:
        return (BOM if source.bom else b"") + text.encode(source.encoding)
    except UnicodeError:
        raise RefusalError(f"the file cannot be written as {source.encoding.upper()}") from None


def is_endless(module: ast.Module) -> bool:
    """Tell whether libcst, for which each part is a level, may run out of stack and end the process."""
    return any(
        (isinstance(node, ast.BoolOp) and len(node.values) > _LONGEST)
        or (isinstance(node, ast.BinOp) and _is_long(node))
        or (isinstance(node, ast.alias) and node.name.count(".") > _LONGEST)
        or (isinstance(node, ast.ImportFrom) and (node.module or "").count(".") > _LONGEST)
        for node in ast.walk(module)
    )


def _is_long(node: ast.expr) -> bool:
    """Tell whether a sum, or what else has its operators in a row, has too many parts."""
    for _ in range(_LONGEST):
        if not isinstance(node, ast.BinOp):
            return False
        node = node.left
    return True
