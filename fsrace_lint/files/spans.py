"""Positions in source text. This module imports nothing else of fsrace-lint."""

from __future__ import annotations

import msgspec


class Span(msgspec.Struct, frozen=True, order=True, gc=False, array_like=True):
    """A range in one file.

    Lines and columns count from 1. Columns count characters, not bytes. The end is exclusive, as in editors
    and SARIF.
    """

    line: int
    column: int
    end_line: int
    end_column: int

    def covers(self, other: Span) -> bool:
        """Return whether another span of the same file lies within this one."""
        begins = (self.line, self.column) <= (other.line, other.column)
        return begins and (other.end_line, other.end_column) <= (self.end_line, self.end_column)


class Place(msgspec.Struct, frozen=True, order=True, gc=False):
    """A span in a file. `path` is as the user would write it, with forward slashes."""

    path: str
    span: Span

    @property
    def position(self) -> str:
        """The start, as editors and compilers write it: `path:line:column`."""
        return f"{self.path}:{self.span.line}:{self.span.column}"
