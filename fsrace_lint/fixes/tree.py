"""A parsed file or part: the positions of its calls, their ancestors, and the meaning of its names."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import libcst as cst
import msgspec
from libcst.metadata import MetadataWrapper, PositionProvider

from fsrace_lint.files.spans import Span
from fsrace_lint.fixes.names import ImportedNames, ImportPosition
from fsrace_lint.fixes.nodes import parents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from libcst.metadata import CodeRange

    from fsrace_lint.fixes.names import ImportStatement

AS_IT_IS: Final = ((1, 0),)
SCOPES: Final = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
_OF_THE_FILE: Final = 2
"""The number of ancestors of a top-level statement: its line, and the module."""


class Places:
    """The positions of the nodes of a module, computed on first use."""

    def __init__(self, module: cst.Module, shifts: Sequence[tuple[int, int]] = AS_IT_IS) -> None:
        """Store a module.

        Args:
            module: The module.
            shifts: Pairs of a first line, and the offset of the lines from there on in the file.
        """
        self.module = module
        self._shifts = shifts

    @cached_property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """The parent of each node."""
        return parents(self.module)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        return MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)

    def span(self, node: cst.CSTNode) -> Span:
        """Return the span of a node in the file, without the parentheses around it."""
        start, end = self._positions[node].start, self._positions[node].end
        return Span(self._line(start.line), start.column + 1, self._line(end.line), end.column + 1)

    def begin(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the line and the column in the file where a node begins."""
        span = self.span(node)
        return span.line, span.column

    def _line(self, line: int) -> int:
        return line + next(shift for first, shift in reversed(self._shifts) if first <= line)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the ancestors of a node, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def standing(self, statement: ImportStatement) -> ImportPosition:
        """Return the position of an import statement."""
        around = list(self.ancestors(statement))
        scopes = tuple(self.begin(node) for node in around if isinstance(node, SCOPES))
        return ImportPosition(self.span(statement), scopes, is_top=len(around) == _OF_THE_FILE)


class Whole(msgspec.Struct, frozen=True):
    """What a part takes from its file."""

    text: str
    names: ImportedNames


class Tree(Places):
    """A module with its positions, calls, and names, and the line ending for new lines.

    For a part of a file, `text` and `names` are those of the whole file.
    """

    def __init__(
        self,
        text: str,
        newline: str,
        shifts: Sequence[tuple[int, int]] = AS_IT_IS,
        whole: Whole | None = None,
    ) -> None:
        """Parse the text of a file, or of a part of one.

        Args:
            text: The text.
            newline: The line ending for new lines.
            shifts: The positions of the lines of a part in its file.
            whole: The file that a part belongs to.

        Raises:
            cst.ParserSyntaxError: libcst cannot parse the text.
        """
        super().__init__(cst.parse_module(text), shifts)
        calls = (node for node in self._positions if isinstance(node, cst.Call))
        self.calls: Mapping[Span, cst.Call] = {self.span(call): call for call in calls}
        self.newline = cst.Newline(value=newline)
        self.text = text if whole is None else whole.text
        self.names = ImportedNames.of(self.module, self.standing) if whole is None else whole.names

    def indent(self, node: cst.CSTNode) -> str | None:
        """Return the indentation around a node; None means the default of the file."""
        blocks = (block for block in self.ancestors(node) if isinstance(block, cst.IndentedBlock))
        return next((block.indent for block in blocks), None)
