"""HTML that is safe by its type: what is no `Markup` is text, and is escaped where it is put in."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

_VOID: Final = frozenset(("input", "link", "meta"))
# What Unicode will never assign, and a parser of HTML complains of.
_NONCHARACTER: Final = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(chr(0x10000 * plane + last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def plain(text: str) -> str:
    """Spell out what steers a reader, and what no HTML document should hold."""
    return _NONCHARACTER.sub(lambda match: f"\\U{ord(match[0]):08x}", visible(text))


def markup(text: str) -> Markup:
    """Escape a text, unless it is HTML already."""
    return text if isinstance(text, Markup) else Markup(escape(plain(text)))


def join(parts: Iterable[str]) -> Markup:
    """Put parts one after another; each is escaped unless it is HTML already."""
    return Markup("".join(map(markup, parts)))


def tag(name: str, /, *content: str, **attributes: str | bool) -> Markup:
    """Make an element.

    Args:
        name: Its name.
        content: What is in it; each part is escaped unless it is HTML already.
        attributes: Its attributes: an underscore at the end is dropped, others become
            dashes. True gives one without a value, False none at all.

    Returns:
        The element.
    """
    given = []
    for key, value in attributes.items():
        if value is not False:
            spelled = key.rstrip("_").replace("_", "-")
            given.append(f" {spelled}" if value is True else f' {spelled}="{escape(plain(str(value)))}"')
    opened = f"<{name}{''.join(given)}>"
    return Markup(opened if name in _VOID else f"{opened}{join(content)}</{name}>")


def prose(text: str) -> Markup:
    """Give text with what stands between backticks as code."""
    words = text.split("`")
    if len(words) % 2 == 0:
        return markup(text)
    return join(tag("code", word) if number % 2 else word for number, word in enumerate(words))
