"""What to replace in a text so that another comes of it: as little as can be."""

from __future__ import annotations

import difflib
import itertools
import operator
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINES: Final = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")


class Edit(NamedTuple):
    """A replacement: from a line and column to another, all from 0 and in characters."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def edits(before: str, after: str) -> list[Edit]:
    """Give the replacements that turn a text into another.

    Args:
        before: The text.
        after: What is to come of it.

    Returns:
        Replacements in the order of the text that do not touch each other.
    """
    old, new = _LINES.findall(before), _LINES.findall(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    matcher = difflib.SequenceMatcher(
        None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False
    )
    return [
        _trimmed(head + first, "".join(old[head + first : head + last]), "".join(new[head + i : head + j]))
        for tag, first, last, i, j in matcher.get_opcodes()
        if tag != "equal"
    ]


def _trimmed(line: int, before: str, after: str) -> Edit:
    """Leave out what is equal at both ends of a replacement; a newline of two characters stays whole."""
    head = _common(before, after)
    if before[head - 1 : head] == "\r":
        head -= 1
    tail = _common(before[head:][::-1], after[head:][::-1])
    if before[len(before) - tail :].startswith("\n") and "\r" in (
        before[len(before) - tail - 1 : len(before) - tail],
        after[len(after) - tail - 1 : len(after) - tail],
    ):
        tail -= 1
    start = _after(line, before[:head])
    end = _after(line, before[: len(before) - tail])
    return Edit(start, end, after[head : len(after) - tail])


def _after(line: int, text: str) -> tuple[int, int]:
    """Give the place that follows a text which begins a line."""
    parts = re.split(r"\r\n?|\n", text)
    return line + len(parts) - 1, len(parts[-1])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Tell how far two texts, or lists of lines, are equal from their beginning."""
    return sum(1 for _ in itertools.takewhile(bool, map(operator.eq, one, other)))
