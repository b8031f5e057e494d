"""One parsed file: where its calls stand, what surrounds them, what its names mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import libcst as cst
import msgspec
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

from fsrace_lint.fixes.names import Names
from fsrace_lint.spans import Span

if TYPE_CHECKING:
    from collections.abc import Iterator


class Tree(msgspec.Struct, frozen=True):
    """A module with its positions, parents and names, and the line ending for new lines."""

    module: cst.Module
    positions: Mapping[cst.CSTNode, CodeRange]
    parents: Mapping[cst.CSTNode, cst.CSTNode]
    calls: Mapping[Span, cst.Call]
    names: Names
    newline: cst.Newline

    def span(self, node: cst.CSTNode) -> Span:
        """Give the place of a node, without the parentheses around it."""
        return _span(self.positions[node])

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Give what surrounds a node, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def indent(self, node: cst.CSTNode) -> str | None:
        """Give the indentation in use around a node; None is the file's default."""
        blocks = (block for block in self.ancestors(node) if isinstance(block, cst.IndentedBlock))
        return next((block.indent for block in blocks), None)


def plant(text: str, newline: str) -> Tree:
    """Parse a file's text into a tree; raises `cst.ParserSyntaxError`."""
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    calls = {_span(place): node for node, place in positions.items() if isinstance(node, cst.Call)}
    return Tree(
        module=wrapper.module,
        positions=positions,
        parents=wrapper.resolve(ParentNodeProvider),
        calls=calls,
        names=Names.of(wrapper.module),
        newline=cst.Newline(value=newline),
    )


def comments(node: cst.CSTNode) -> list[cst.Comment]:
    """List the comments within a node, in their order."""
    found: list[cst.Comment] = []
    if isinstance(node, cst.Comment):
        found.append(node)
    for child in node.children:
        found += comments(child)
    return found


def _span(place: CodeRange) -> Span:
    return Span(place.start.line, place.start.column + 1, place.end.line, place.end.column + 1)
