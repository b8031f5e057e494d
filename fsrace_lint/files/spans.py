"""Places in source text: the lowest stone, which imports nothing of ours."""

from __future__ import annotations

import msgspec


class Span(msgspec.Struct, frozen=True, order=True, gc=False, array_like=True):
    """A stretch of one file.

    Lines and columns count from 1, columns are characters (not bytes), and the
    end is exclusive, as editors and SARIF count them.
    """

    line: int
    column: int
    end_line: int
    end_column: int

    def covers(self, other: Span) -> bool:
        """Tell whether another span of the same file lies in this one."""
        begins = (self.line, self.column) <= (other.line, other.column)
        return begins and (other.end_line, other.end_column) <= (self.end_line, self.end_column)


class Place(msgspec.Struct, frozen=True, order=True, gc=False):
    """A span in a named file; `path` is as the user would write it, with forward slashes."""

    path: str
    span: Span

    @property
    def position(self) -> str:
        """Where it begins, as editors and compilers spell it: the path, the line and the column."""
        return f"{self.path}:{self.span.line}:{self.span.column}"
