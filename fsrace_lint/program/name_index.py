"""The index of the heads of all files: which files contain a name."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from fsrace_lint.program.grouping import where
from fsrace_lint.syntax.name_index_entry import NameIndexEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.syntax.name_index_entry import ComputedIndexEntry, PackedIndexEntry

    AnyHead: TypeAlias = NameIndexEntry | ComputedIndexEntry | PackedIndexEntry

Field: TypeAlias = Literal["referenced_names", "aliased", "further", "bases", "imported", "classes", "texts"]
"""A kind of name in a head; `further` is `aliased` and the names whose call results have aliases."""
FIELDS: Final[tuple[Field, ...]] = get_args(Field)
NO_NAMES: Final[AnyHead] = NameIndexEntry()
"""The head of a file that does not exist."""
_MOST: Final = 40
"""The maximum number of changed heads; beyond it, the index is rebuilt."""


def _names(head: AnyHead, field: Field) -> Iterable[str]:
    if field == "further":
        return {*head.aliased, *head.results}
    names: tuple[str, ...] = getattr(head, field)
    return names


def differing(field: Field | Literal["renamed"], old: AnyHead, new: AnyHead) -> set[str]:
    """Return the names that differ between two heads of a file."""
    if field == "renamed":
        return {name for name, _ in {*old.renamed} ^ {*new.renamed}}
    return {*_names(old, field)} ^ {*_names(new, field)}


class _Ordered:
    """Heads, and an index from names to files for each kind of name that was searched for."""

    def __init__(self, heads: Sequence[tuple[str, AnyHead]]) -> None:
        self.heads = heads
        self._fields: dict[Field, dict[str, tuple[int, ...]]] = {}

    def is_done(self, field: Field) -> bool:
        return field in self._fields

    def having(self, field: Field, name: str) -> tuple[int, ...]:
        if field not in self._fields:
            named = ((place, _names(head, field)) for place, (_, head) in enumerate(self.heads))
            self._fields[field] = where(named)
        return self._fields[field].get(name, ())

    @functools.cached_property
    def denoting(self) -> frozenset[str]:
        return frozenset({""}.union(*(head.denoting for _, head in self.heads)))


class _Known(NamedTuple):
    """The part of an index that is valid for a later state of the files."""

    ordered: _Ordered
    changed: list[tuple[int, AnyHead]]
    """The positions of files with changed heads, and the old heads."""
    stand: dict[int, int] | None
    """The new positions of indexed files by old position, or None if the positions are unchanged."""


class NameIndex:
    """An index of the files that contain a name, as positions in the list of all files.

    Each kind of name is indexed on the first search for it. While few files change, the index is kept, and
    the changed files are compared one by one.
    """

    def __init__(self, heads: Iterable[tuple[str, AnyHead]], before: NameIndex | None = None) -> None:
        """Initialize with the heads of the files.

        Args:
            heads: The path and the head of each file, in the order of the project.
            before: The index of an earlier state of the files.
        """
        self._heads = tuple(heads)
        known = None if before is None else before.known_of(self._heads)
        self._ordered, self._changed, self._stand = known or _Known(_Ordered(self._heads), [], None)
        self._differences: dict[Field, dict[str, set[int]]] = {}

    def known_of(self, heads: Sequence[tuple[str, AnyHead]]) -> _Known | None:
        """Return the part of this index that is valid for a later state; None if too many files changed."""
        stood = {path: (place, head) for place, (path, head) in enumerate(self._ordered.heads)}
        kept: dict[int, int] = {}
        changed: list[tuple[int, AnyHead]] = []
        for place, (path, head) in enumerate(heads):
            then, old = stood.get(path, (None, NO_NAMES))
            if then is not None:
                kept[then] = place
            if old is not head:
                changed.append((place, old))
        if len(changed) + len(stood) - len(kept) > _MOST:
            return None
        return _Known(self._ordered, changed, None if len(kept) == len(stood) == len(heads) else kept)

    def is_ordered(self, field: Field) -> bool:
        """Return whether a kind of name is indexed."""
        return self._ordered.is_done(field)

    def having(self, field: Field, name: str) -> Sequence[int]:
        """Return the positions of the files whose heads contain a name, in order.

        Args:
            field: The kind of name.
            name: The name.
        """
        places: Sequence[int] = self._ordered.having(field, name)
        if self._stand is not None:
            places = [self._stand[place] for place in places if place in self._stand]
        differing = self._differing(field).get(name) if self._changed else None
        return places if differing is None else sorted(differing.symmetric_difference(places))

    def _differing(self, field: Field) -> dict[str, set[int]]:
        """Return, by name, the positions of the files where a name of a kind was added or removed."""
        if field not in self._differences:
            found: dict[str, set[int]] = {}
            for place, old in self._changed:
                for name in differing(field, old, self._heads[place][1]):
                    found.setdefault(name, set()).add(place)
            self._differences[field] = found
        return self._differences[field]

    @functools.cached_property
    def denoting(self) -> frozenset[str]:
        """A superset of the names of functions and classes."""
        before = self._ordered.denoting
        new = {name for place, _ in self._changed for name in self._heads[place][1].denoting} - before
        return before | new if new else before

    def put_in_order(self) -> None:
        """Index all kinds of names now, before the first search."""
        for field in FIELDS:
            self.having(field, "")
        _ = self.denoting
