"""Text that is safe to print."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LOG_COMMAND: Final = re.compile(r"(?<=#)#(?=\w*\[)")
"""The start of a command in the logs of Azure Pipelines and GitHub, anywhere in a line: `##vso[`."""
_FIRST_IN_LINE: Final = re.compile(r"(?:(?<!\S)|^):(?=:[A-Za-z])")
"""The start of a command in the logs of GitHub at the beginning of a word, which can begin a line: `::error`.
"""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0")
"""Invisible letters and marks; some are valid in Python identifiers."""


def visible(text: str) -> str:
    """Escape text that would control, confuse, or crash a terminal or the log of a CI service.

    This includes control, bidi, and undecodable characters, and the start of commands to the service.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_visible_char, text))
    if "##" in text:
        text = LOG_COMMAND.sub(r"\\x23", text)
    if "::" in text:
        text = _FIRST_IN_LINE.sub(r"\\x3a", text)
    return text


@lru_cache(maxsize=4096)
def _visible_char(char: str) -> str:
    import unicodedata  # noqa: PLC0415  # most words are ASCII

    joiner = char in {"\u200c", "\u200d"}
    if (unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} or char in _BLANK) and not joiner:
        return char.encode("unicode_escape").decode("ascii")
    return char


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
