"""Traverse syntax trees without `CSTNode.children`, which copies each node."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

if TYPE_CHECKING:
    from collections.abc import Iterator

_REPORTING: Final = m.Name(m.MatchRegex("print|debug|info|warn|warning|error"))
REPORT: Final = m.Call(func=_REPORTING | m.Attribute(attr=_REPORTING))
"""Matches a call that only reports something to the user."""


def last_name(function: cst.BaseExpression) -> str:
    """Return the last part of the name of a function, or an empty text if it has no name."""
    name = function.attr if isinstance(function, cst.Attribute) else function
    return name.value if isinstance(name, cst.Name) else ""


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """List the direct children of a node, field by field."""
    found: list[cst.CSTNode] = []
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += [each for each in value if isinstance(each, cst.CSTNode)]
    return found


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def within(node: cst.CSTNode, *leaves: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Yield a node and its descendants, parents first, but nothing inside leaves.

    Statements are in the order of the file; the parts of an expression may not be.
    """
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        if not isinstance(found, leaves):
            waiting += reversed(children(found))


def parents(node: cst.CSTNode) -> dict[cst.CSTNode, cst.CSTNode]:
    """Map each descendant of a node to its parent."""
    around: dict[cst.CSTNode, cst.CSTNode] = {}
    waiting = [node]
    while waiting:
        found = waiting.pop()
        inner = children(found)
        around.update(dict.fromkeys(inner, found))
        waiting += inner
    return around


def comments(node: cst.CSTNode) -> list[cst.Comment]:
    """List the comments in a node, in order."""
    found: list[cst.Comment] = []
    if isinstance(node, cst.Comment):
        found.append(node)
    for child in node.children:
        found += comments(child)
    return found
