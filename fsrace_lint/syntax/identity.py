"""Syntax nodes compared by identity; by default, nodes with the same content are equal."""

from __future__ import annotations

from typing import Generic, TypeVar

Kind = TypeVar("Kind", covariant=True)  # noqa: PLC0105  # named after the wrapped object


class Identity(Generic[Kind]):
    """A wrapper that compares an object by identity and keeps it alive."""

    __slots__ = ("of",)

    def __init__(self, of: Kind) -> None:
        """Initialize with the object."""
        self.of = of

    def __eq__(self, other: object) -> bool:
        """Return whether another wrapper holds the same object."""
        return isinstance(other, Identity) and self.of is other.of

    def __hash__(self) -> int:
        """Return the identity hash of the object."""
        return object.__hash__(self.of)
