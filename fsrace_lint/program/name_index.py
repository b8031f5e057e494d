"""The heads of all files of a project, and in which of them a name stands."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from fsrace_lint.program.grouping import where
from fsrace_lint.syntax.name_index_entry import NameIndexEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.syntax.name_index_entry import ComputedIndexEntry, PackedIndexEntry

    AnyHead: TypeAlias = NameIndexEntry | ComputedIndexEntry | PackedIndexEntry

Field: TypeAlias = Literal["referenced_names", "aliased", "further", "bases", "imported", "classes"]
"""A kind of names in a head; what is `further` has a further name, or what a call of it gives has one."""
FIELDS: Final[tuple[Field, ...]] = ("referenced_names", "aliased", "further", "bases", "imported", "classes")
NO_NAMES: Final[AnyHead] = NameIndexEntry()
"""What stands for the head of a file that is not there."""
_MOST: Final = 40
"""Where more heads were changed, all are put in order anew."""


def _names(head: AnyHead, field: Field) -> Iterable[str]:
    if field == "further":
        return {*head.aliased, *head.results}
    names: tuple[str, ...] = getattr(head, field)
    return names


def differing(field: Field | Literal["renamed"], old: AnyHead, new: AnyHead) -> set[str]:
    """Name what only one of two heads has, or has otherwise than the other one."""
    if field == "renamed":
        return {name for name, _ in {*old.renamed} ^ {*new.renamed}}
    return {*_names(old, field)} ^ {*_names(new, field)}


class _Ordered:
    """Heads, with the places of the files that have a name, kind by kind."""

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
    """How far what is in order holds for a later state of the files."""

    ordered: _Ordered
    changed: list[tuple[int, AnyHead]]
    """The places of files whose heads are others now, with the heads that are in order."""
    stand: dict[int, int] | None
    """Where those files stand now that are in order, by where they stood; None for the same places."""


class NameIndex:
    """Tells which files have a name, by their places among all.

    Names are put in order when they are asked for. That is kept while few files change: these are looked at
    one by one.
    """

    def __init__(self, heads: Iterable[tuple[str, AnyHead]], before: NameIndex | None = None) -> None:
        """Take the heads of the files.

        Args:
            heads: Each with the path of its file, in the order of the project.
            before: Those of an earlier state of the files.
        """
        self._heads = tuple(heads)
        known = None if before is None else before.known_of(self._heads)
        self._ordered, self._changed, self._stand = known or _Known(_Ordered(self._heads), [], None)
        self._differences: dict[Field, dict[str, set[int]]] = {}

    def known_of(self, heads: Sequence[tuple[str, AnyHead]]) -> _Known | None:
        """Give what is in order of a later state of the files; None where many are others."""
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
        """Tell whether names of a kind have been put in order."""
        return self._ordered.is_done(field)

    def having(self, field: Field, name: str) -> Sequence[int]:
        """Give the places of the files whose heads have a name, in order.

        Args:
            field: The kind of names.
            name: The name.

        Returns:
            The places.
        """
        places: Sequence[int] = self._ordered.having(field, name)
        if self._stand is not None:
            places = [self._stand[place] for place in places if place in self._stand]
        differing = self._differing(field).get(name) if self._changed else None
        return places if differing is None else sorted(differing.symmetric_difference(places))

    def _differing(self, field: Field) -> dict[str, set[int]]:
        """Give the places of the files that have a name of a kind now, or had it, and not both."""
        if field not in self._differences:
            found: dict[str, set[int]] = {}
            for place, old in self._changed:
                for name in differing(field, old, self._heads[place][1]):
                    found.setdefault(name, set()).add(place)
            self._differences[field] = found
        return self._differences[field]

    @functools.cached_property
    def denoting(self) -> frozenset[str]:
        """Names by which functions and classes are known, more than there are."""
        before = self._ordered.denoting
        new = {name for place, _ in self._changed for name in self._heads[place][1].denoting} - before
        return before | new if new else before

    def put_in_order(self) -> None:
        """Put all names in order now, and not when somebody waits for it."""
        for field in FIELDS:
            self.having(field, "")
        _ = self.denoting
