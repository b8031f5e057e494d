"""Positions in the units of a client: lines from 0, columns in units of the negotiated encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lsprotocol import types

from fsrace_lint.files.source import split_lines

if TYPE_CHECKING:
    from fsrace_lint.files.spans import Span

BOM: Final = "\ufeff"
_CODECS: Final = {
    types.PositionEncodingKind.Utf8: ("utf-8", 1),
    types.PositionEncodingKind.Utf16: ("utf-16-le", 2),
    types.PositionEncodingKind.Utf32: ("utf-32-le", 4),
}


class Text:
    """A text and its lines, which end only at a line feed, a carriage return, or both."""

    def __init__(self, text: str, encoding: str) -> None:
        """Initialize with a text, including any BOM, and the encoding whose units count as columns."""
        self.lines = split_lines(text)
        self._shift = 1 if text.startswith(BOM) else 0
        self._codec, self._width = _CODECS[types.PositionEncodingKind(encoding)]

    def position(self, line: int, column: int) -> types.Position:
        """Convert a position.

        Args:
            line: The line, from 0; one after the last is the end of the text.
            column: The column in characters, from 0 and without a BOM; one after the last is the end of the
                line.

        Returns:
            The position in the units of the client.
        """
        if line >= len(self.lines):
            line, column = len(self.lines) - 1, len(self.lines[-1])
        before = self.lines[line][: column + (self._shift if line == 0 else 0)]
        units = len(before) if before.isascii() else self._units(before)
        return types.Position(line, units)

    def _units(self, text: str) -> int:
        return len(text.encode(self._codec, "surrogatepass")) // self._width

    def range(self, span: Span) -> types.Range:
        """Convert a span, whose lines and columns count from 1."""
        return types.Range(
            self.position(span.line - 1, span.column - 1),
            self.position(span.end_line - 1, span.end_column - 1),
        )
