"""HTML that is safe by type: text that is not `Markup` is escaped when it is inserted."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final

from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

_CODE: Final = re.compile(r"(?<!`)(?:`(?P<one>[^`]+)`|`` (?P<two>.+?) ``)(?!`)")
_VOID: Final = frozenset(("input", "link", "meta"))
# Noncharacters, which Unicode never assigns, and which are errors for HTML parsers.
_NONCHARACTER: Final = re.compile(
    "[\ufdd0-\ufdef"
    + "".join(chr(0x10000 * plane + last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def plain(text: str) -> str:
    """Escape control characters, and characters that HTML does not allow."""
    return _NONCHARACTER.sub(lambda match: f"\\U{ord(match[0]):08x}", visible(text))


def markup(text: str) -> Markup:
    """Escape a text, unless it is already HTML."""
    return text if isinstance(text, Markup) else Markup(escape(plain(text)))


def join(parts: Iterable[str]) -> Markup:
    """Concatenate parts; each is escaped unless it is already HTML."""
    return Markup("".join(map(markup, parts)))


def tag(name: str, /, *content: str, **attributes: str | bool) -> Markup:
    """Return an element.

    Args:
        name: The name of the element.
        content: Its contents; each part is escaped unless it is already HTML.
        attributes: Its attributes. A trailing underscore is dropped, and others become dashes. True adds an
            attribute without a value, and False adds none.

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
    """Return a text with the parts between backticks as code.

    Two backticks enclose code that contains one, with a space on both sides.
    """
    pieces, end = [], 0
    for found in _CODE.finditer(text):
        pieces += [text[end : found.start()], tag("code", found["one"] or found["two"])]
        end = found.end()
    return join([*pieces, text[end:]])
