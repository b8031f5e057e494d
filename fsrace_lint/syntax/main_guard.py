"""Detection of scripts: files that test `__name__`."""

from __future__ import annotations

import ast
from typing import Final

_HOLDING: Final = (ast.If, ast.Try, ast.With, ast.ExceptHandler)


def tests_main(node: ast.AST) -> bool:
    """Return whether a statement of a module is or contains a branch that tests `__name__`."""
    if isinstance(node, ast.If) and _asks_for_name(node.test):
        return True
    inner = ast.iter_child_nodes(node) if isinstance(node, _HOLDING) else ()
    return any(map(tests_main, inner))


def _asks_for_name(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(map(_asks_for_name, test.values))
    sides = (test.left, *test.comparators) if isinstance(test, ast.Compare) else ()
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
