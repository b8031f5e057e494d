"""The smallest edits between two texts, with positions in the old text."""

from __future__ import annotations

import re
from bisect import bisect_right
from difflib import SequenceMatcher
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from fsrace_lint.files.spans import Span
from fsrace_lint.report import Edit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their line ends."""
    return _LINE.findall(text)


def between(before: str, after: str) -> tuple[Edit, ...]:
    """Return the edits that turn one text into another.

    Args:
        before: The old text.
        after: The new text.

    Returns:
        The edits in order; they neither overlap nor touch, and none separates a carriage return from its line
        feed.
    """
    text = Lined(before)
    return text.edits(0, len(text.lines), after)


class Lined:
    """A text with its lines, for many changes."""

    def __init__(self, text: str) -> None:
        """Split a text into lines."""
        self.text = text
        self.lines = lines_of(text)
        self._starts = _starts(self.lines)

    def edits(self, first: int, last: int, instead: str) -> tuple[Edit, ...]:
        """Return the edits that replace some lines.

        Args:
            first: The first line, counted from 0.
            last: The line after the last one.
            instead: The new text; it ends with a line end, unless it replaces the last lines.

        Returns:
            The edits, as for `between()`.
        """
        old, new = self.lines[first:last], lines_of(instead)
        if old == new:
            return ()
        while (head := same(old, new)) == min(len(old), len(new)) and last < len(self.lines):
            # added or deleted lines may repeat below: among equal positions, the last one is returned
            below = self.lines[last : last + len(old) + len(new)]
            old, new, last = old + below, new + below, last + len(below)
        tail = same(old[head:][::-1], new[head:][::-1])
        rest = (old[head : len(old) - tail], new[head : len(new) - tail])
        edits = []
        for kind, begin, end, new_begin, new_end in SequenceMatcher(
            None, *rest, autojunk=False
        ).get_opcodes():
            if kind != "equal":
                place = (self._starts[first + head + begin], self._starts[first + head + end])
                edits.append(_trimmed(self.text, self._starts, *place, "".join(rest[1][new_begin:new_end])))
        return tuple(edits)


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with all edits applied; their positions refer to the original text."""
    starts = _starts(lines_of(text))
    ordered = sorted(edits, key=lambda edit: edit.span, reverse=True)
    for edit in ordered:
        span = edit.span
        begin = starts[span.line - 1] + span.column - 1
        end = starts[span.end_line - 1] + span.end_column - 1
        text = text[:begin] + edit.text + text[end:]
    return text


def _starts(lines: Sequence[str]) -> list[int]:
    """Return the offset of each line, and of the end of the text."""
    return [0, *accumulate(map(len, lines))]


def same(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the leading lines or characters that are equal."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _trimmed(before: str, starts: Sequence[int], begin: int, end: int, text: str) -> Edit:
    """Return an edit without the characters that are equal at both ends."""
    old = before[begin:end]
    head = same(old, text)
    if old[:head].endswith("\r") and "\n" in (old[head : head + 1], text[head : head + 1]):
        head -= 1
    rest = (old[head:][::-1], text[head:][::-1])
    tail = same(*rest)
    if rest[0][:tail].endswith("\n") and "\r" in (side[tail : tail + 1] for side in rest):
        tail -= 1
    line, column = _position(before, starts, begin + head)
    end_line, end_column = _position(before, starts, end - tail)
    return Edit(Span(line, column, end_line, end_column), text[head : len(text) - tail])


def _position(text: str, starts: Sequence[int], offset: int) -> tuple[int, int]:
    """Return the line and column of an offset; after the last line end, a new line begins."""
    last = len(starts) - 1
    line = bisect_right(starts, offset, 0, last)
    if offset == starts[last] and (not text or text[-1] in "\r\n"):
        return last + 1, 1
    return line, offset - starts[line - 1] + 1
