"""Pieces of syntax as themselves: they are equal where they are spelled alike."""

from __future__ import annotations

from typing import Generic, TypeVar

Kind = TypeVar("Kind", covariant=True)  # noqa: PLC0105  # what is wrapped says what it is


class Identity(Generic[Kind]):
    """One object, equal to itself alone; it is held on to."""

    __slots__ = ("of",)

    def __init__(self, of: Kind) -> None:
        """Take the object."""
        self.of = of

    def __eq__(self, other: object) -> bool:
        """Tell whether another one is of the same object."""
        return isinstance(other, Identity) and self.of is other.of

    def __hash__(self) -> int:
        """Give a number that tells objects apart."""
        return object.__hash__(self.of)
