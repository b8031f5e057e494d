"""Detects syntax that requires a newer Python than the running one."""

from __future__ import annotations

import re
import sys
from typing import Final, NamedTuple

from fsrace_lint.files.source import split_lines


class _Feature(NamedTuple):
    """A feature of Python: the version that added it, and how a line that uses it is recognized.

    If `said` is set, the message of the parser must match it too. Without `is_certain`, the line can also
    be wrong in every version.
    """

    since: tuple[int, int]
    line: re.Pattern[str]
    said: str = ""
    is_certain: bool = True


_TYPED: Final = r"^\s*(?:(?:async\s+)?def|class|type)\s+\w+\s*\["
_FEATURES: Final = (
    _Feature((3, 11), re.compile(r"^\s*except\s*\*")),
    _Feature((3, 11), re.compile(r"\w\s*\[(?:[^\[\]]*,)?\s*\*\w")),
    _Feature((3, 11), re.compile(r"\*\w+\s*:\s*\*\w")),
    _Feature((3, 12), re.compile(_TYPED)),
    _Feature((3, 12), re.compile(r"^\s*type\s+\w+\s*=[^=]")),
    _Feature((3, 12), re.compile(""), r"f-string: unmatched '[(\[{]'|f-string expression part cannot"),
    _Feature((3, 12), re.compile(""), "f-string", is_certain=False),
    _Feature(
        (3, 12),
        re.compile(r"\b(?:f|rf|fr)['\"]", re.IGNORECASE),
        "unterminated string|line continuation|invalid syntax",
        is_certain=False,
    ),
    _Feature((3, 13), re.compile(rf"{_TYPED}[^\]]*=")),
    _Feature((3, 14), re.compile(r"\b(?:t|rt|tr)['\"]", re.IGNORECASE)),
    _Feature((3, 14), re.compile(r"^\s*except\b[^(:]*,[^(]*:")),
)


def hint(said: str, line: str, python: tuple[int, int] = sys.version_info[:2]) -> str:
    """Describe the Python version that a line requires.

    Args:
        said: The message of the parser.
        line: The line that does not parse.
        python: The version of the running Python.

    Returns:
        A message, or an empty string if the line has no syntax that is known to be newer.
    """
    newer = [
        feature
        for feature in _FEATURES
        if feature.since > python and feature.line.search(line) and re.search(feature.said, said)
    ]
    if not newer:
        return ""
    cause = max(newer, key=lambda feature: (feature.since, feature.is_certain))
    running, needed = (".".join(map(str, version)) for version in (python, cause.since))
    if cause.is_certain:
        return f"syntax requires Python {needed}; fsrace-lint is running on Python {running} (file skipped)"
    return f"{said}; this may require Python {needed} (fsrace-lint is running on Python {running})"


def located(error: SyntaxError, text: str) -> tuple[str, int, int]:
    """Describe a syntax error.

    Args:
        error: The error that the parser raised.
        text: The text that does not parse.

    Returns:
        The message of the parser, or that the line requires a newer Python; and the line and the column,
        which are inside the text.
    """
    lines = split_lines(text)
    line = min(max(error.lineno or 1, 1), len(lines))
    here = lines[line - 1]
    column = min(max(error.offset or 1, 1), len(here) + 1)
    return hint(error.msg, here) or error.msg, line, column
