"""Grouping of items by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

Item = TypeVar("Item")


def where(found: Iterable[tuple[Item, Iterable[str]]]) -> dict[str, tuple[Item, ...]]:
    """Return the items of each name, in order, from the names of each item."""
    by_name: dict[str, list[Item]] = {}
    for item, names in found:
        for name in names:
            if name in by_name:
                by_name[name].append(item)
            else:
                by_name[name] = [item]
    # most names have one item, and a list allocates space for four
    return {name: tuple(items) for name, items in by_name.items()}
