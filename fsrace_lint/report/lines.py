"""The source code at a place, if it is known."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from fsrace_lint.files import source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.files.spans import Place


class Lines:
    """The lines of the sources, split on demand."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        """Initialize with the sources by `Place.path`."""

        @lru_cache(maxsize=8)
        def lines_of(path: str) -> Sequence[str]:
            return source.split_lines(sources[path].text) if path in sources else ()

        self.of: Callable[[str], Sequence[str]] = lines_of
        """Returns the lines of a path; none if it is unknown."""

    def first(self, place: Place) -> str:
        """Return the whole first line of a place, or "" if it is unknown."""
        lines = self.of(place.path)
        return lines[place.span.line - 1] if 0 < place.span.line <= len(lines) else ""

    def text(self, place: Place) -> str:
        """Return the text of a place, or "" if it is unknown."""
        span = place.span
        rows = list(self.of(place.path)[span.line - 1 : span.end_line])
        if not rows:
            return ""
        rows[-1] = rows[-1][: span.end_column - 1]
        rows[0] = rows[0][span.column - 1 :]
        return "\n".join(rows)
