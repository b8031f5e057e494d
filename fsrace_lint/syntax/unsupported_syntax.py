"""Syntax that newer Pythons read: what to say where the running one cannot."""

from __future__ import annotations

import re
import sys
from typing import Final, NamedTuple

from fsrace_lint.files.source import split_lines


class _Feature(NamedTuple):
    """What a line looks like that uses it, what it is called, and since when it can be read.

    Where `said` is set, the parser must say something like that: what the line looks like is not enough.
    """

    since: tuple[int, int]
    name: str
    line: re.Pattern[str]
    said: str = ""


_TYPED: Final = r"^\s*(?:(?:async\s+)?def|class|type)\s+\w+\s*\["
_FEATURES: Final = (
    _Feature((3, 11), "except*", re.compile(r"^\s*except\s*\*")),
    _Feature((3, 11), "a star in an index", re.compile(r"\w\s*\[(?:[^\[\]]*,)?\s*\*\w")),
    _Feature((3, 11), "a star in an annotation", re.compile(r"\*\w+\s*:\s*\*\w")),
    _Feature((3, 12), "type parameters", re.compile(_TYPED)),
    _Feature((3, 12), "the type statement", re.compile(r"^\s*type\s+\w+\s*=[^=]")),
    _Feature((3, 12), "an f-string", re.compile(""), "f-string"),
    _Feature(
        (3, 12),
        "an f-string",
        re.compile(r"\b(?:f|rf|fr)['\"]", re.IGNORECASE),
        "unterminated string|line continuation|invalid syntax",
    ),
    _Feature((3, 13), "a default of a type parameter", re.compile(rf"{_TYPED}[^\]]*=")),
    _Feature((3, 14), "a template string", re.compile(r"\b(?:t|rt|tr)['\"]", re.IGNORECASE)),
    _Feature((3, 14), "several exceptions without parentheses", re.compile(r"^\s*except\b[^(:]*,[^(]*:")),
)


def hint(said: str, line: str, python: tuple[int, int] = sys.version_info[:2]) -> str:
    """Say which Python may read a line that this one cannot.

    Args:
        said: What the parser says of it.
        line: The line.
        python: The version of the running Python.

    Returns:
        The end of a message; nothing where the line has no syntax that we know to be newer.
    """
    newer = [
        feature
        for feature in _FEATURES
        if feature.since > python and feature.line.search(line) and re.search(feature.said, said)
    ]
    if not newer:
        return ""
    since, name, *_ = max(newer, key=lambda feature: feature.since)
    running, needed = (".".join(map(str, version)) for version in (python, since))
    takes = "may hold more" if name == "an f-string" else "can be read"
    return f"; this is Python {running}, and {name} {takes} from Python {needed} on"


def located(error: SyntaxError, text: str) -> tuple[str, int, int]:
    """Say what is wrong with a text, and where.

    Args:
        error: What the parser raised.
        text: The text.

    Returns:
        What the parser says, with a hint where a newer Python may read the line; the line and the column,
        which are in the text.
    """
    lines = split_lines(text)
    line = min(max(error.lineno or 1, 1), len(lines))
    here = lines[line - 1]
    column = min(max(error.offset or 1, 1), len(here) + 1)
    return f"{error.msg}{hint(error.msg, here)}", line, column
