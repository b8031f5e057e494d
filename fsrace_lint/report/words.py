"""Words that are safe to print."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LOG_COMMAND: Final = re.compile(r"(?<=#)#(?=\w*\[)")
"""What makes a command of a line in the logs of Azure Pipelines and GitHub, wherever it stands: `##vso[`."""
_FIRST_IN_LINE: Final = re.compile(r"(?:(?<!\S)|^):(?=:[A-Za-z])")
"""The same in the logs of GitHub where a line begins with it, as any word can: `::error`."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2065\u2800\u3164\uffa0")
"""Letters and marks that show nothing; some of them can stand in a name of Python."""


def visible(text: str) -> str:
    """Spell out what would steer, confuse or crash a terminal or the log of a CI service.

    That are control, bidi and undecodable characters, and the beginnings of commands to the service.
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
    """Give a number with its noun, in the plural where it is not one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
