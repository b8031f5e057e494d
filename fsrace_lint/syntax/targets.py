"""The names that targets and patterns bind."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def target_names(node: ast.expr) -> Iterable[str]:
    """Yield the variables that a target binds, and attributes of variables as `x.name`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield f"{node.value.id}.{node.attr}"
    elif isinstance(node, ast.Starred):
        yield from target_names(node.value)
    elif isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from target_names(part)


def pattern_names(pattern: ast.pattern) -> Iterable[str]:
    """Yield the variables that a `match` pattern binds."""
    for node in ast.walk(pattern):
        if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest
