"""How entries of the catalog name the arguments of calls."""

from __future__ import annotations

import functools

import msgspec


class ArgumentName(msgspec.Struct, frozen=True):
    """Which argument of a call: a position, a keyword, or `self`, the object of a method."""

    position: int | None = None
    keyword: str | None = None
    default: str = ""
    """What holds where it is not given: `true` for a flag, the letters of an open mode, a number."""

    @property
    def is_self(self) -> bool:
        """Whether it is the object whose method is called."""
        return self.keyword == "self"


@functools.cache
def argument(text: str) -> ArgumentName:
    """Parse `position:keyword`, `position`, `:keyword` or `self`, for a flag perhaps with `=true` behind it.

    Args:
        text: What the catalog says.

    Returns:
        The argument.

    Raises:
        ValueError: It is none of these.
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
def flags(text: bool | str) -> tuple[ArgumentName, ...]:  # noqa: FBT001  # as the catalog writes it
    """Parse the flags of an entry; none where it is so, or not so, by its nature."""
    return tuple(argument(word) for word in text.split()) if isinstance(text, str) else ()
