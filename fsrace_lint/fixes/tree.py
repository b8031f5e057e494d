"""One parsed file, or a part of one: where its calls stand, what surrounds them, what its names mean."""

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
"""How much is around a statement of the file itself: its line, and the file."""


class Places:
    """Where the nodes of a module stand, looked up once that is asked."""

    def __init__(self, module: cst.Module, shifts: Sequence[tuple[int, int]] = AS_IT_IS) -> None:
        """Remember a module.

        Args:
            module: The module.
            shifts: From which line on it stands how many lines further down in its file.
        """
        self.module = module
        self._shifts = shifts

    @cached_property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """What is right around each node."""
        return parents(self.module)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        return MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)

    def span(self, node: cst.CSTNode) -> Span:
        """Give the place of a node in the file, without the parentheses around it."""
        start, end = self._positions[node].start, self._positions[node].end
        return Span(self._line(start.line), start.column + 1, self._line(end.line), end.column + 1)

    def begin(self, node: cst.CSTNode) -> tuple[int, int]:
        """Give the line and the column in the file where a node begins."""
        span = self.span(node)
        return span.line, span.column

    def _line(self, line: int) -> int:
        return line + next(shift for first, shift in reversed(self._shifts) if first <= line)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Give what surrounds a node, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def standing(self, statement: ImportStatement) -> ImportPosition:
        """Tell where an import statement stands."""
        around = list(self.ancestors(statement))
        scopes = tuple(self.begin(node) for node in around if isinstance(node, SCOPES))
        return ImportPosition(self.span(statement), scopes, is_top=len(around) == _OF_THE_FILE)


class Whole(msgspec.Struct, frozen=True):
    """What a part has from its file."""

    text: str
    names: ImportedNames


class Tree(Places):
    """A module with its places, its calls and names, and the line ending for new lines.

    Of a part of a file, `text` and `names` are those of the whole.
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
            shifts: Where the lines of a part stand in its file.
            whole: The file of a part.

        Raises:
            cst.ParserSyntaxError: It is not Python for libcst.
        """
        super().__init__(cst.parse_module(text), shifts)
        calls = (node for node in self._positions if isinstance(node, cst.Call))
        self.calls: Mapping[Span, cst.Call] = {self.span(call): call for call in calls}
        self.newline = cst.Newline(value=newline)
        self.text = text if whole is None else whole.text
        self.names = ImportedNames.of(self.module, self.standing) if whole is None else whole.names

    def indent(self, node: cst.CSTNode) -> str | None:
        """Give the indentation in use around a node; None is the file's default."""
        blocks = (block for block in self.ancestors(node) if isinstance(block, cst.IndentedBlock))
        return next((block.indent for block in blocks), None)
