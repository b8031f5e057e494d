"""How library models name the arguments of calls."""

from __future__ import annotations

import functools

import msgspec


class ArgumentName(msgspec.Struct, frozen=True):
    """An argument of a call: a position, a keyword, or `self`, the object of a method."""

    position: int | None = None
    keyword: str | None = None
    default: str = ""
    """The value if the call omits the argument: `true` for a flag, an open mode, a number, or a path."""

    @property
    def is_self(self) -> bool:
        """Whether the argument is the object whose method is called."""
        return self.keyword == "self"


@functools.cache
def argument(text: str) -> ArgumentName:
    """Parse `position:keyword`, `position`, `:keyword`, or `self`, with an optional `=default` suffix.

    Args:
        text: The text in the library model.

    Returns:
        The argument.

    Raises:
        ValueError: The text has another form.
    """
    body, _, default = text.partition("=")
    if body == "self":
        return ArgumentName(keyword="self")
    position, _, keyword = body.partition(":")
    if not (position or keyword) or (keyword and not keyword.isidentifier()):
        raise ValueError(text)
    if position and not position.isdecimal():
        raise ValueError(text)
    return ArgumentName(int(position) if position else None, keyword or None, default)


@functools.cache
def flags(text: bool | str) -> tuple[ArgumentName, ...]:  # noqa: FBT001  # the type in TOML
    """Parse the flags of an entry; empty if the property is a constant boolean."""
    return tuple(argument(word) for word in text.split()) if isinstance(text, str) else ()
