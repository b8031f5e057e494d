"""Words that are safe to print."""

from __future__ import annotations

import unicodedata
from functools import lru_cache


def visible(text: str) -> str:
    """Spell out what would steer, confuse or crash a terminal: control, bidi and undecodable characters."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible_char, text))


@lru_cache(maxsize=4096)
def _visible_char(char: str) -> str:
    joiner = char in {"\u200c", "\u200d"}
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and not joiner:
        return char.encode("unicode_escape").decode("ascii")
    return char


def count(number: int, noun: str) -> str:
    """Give a number with its noun, in the plural where it is not one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
