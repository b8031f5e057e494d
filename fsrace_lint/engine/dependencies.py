"""On which files an answer depends, so that it can be kept while these do not change."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

Key = TypeVar("Key", bound="Hashable")
Answer = TypeVar("Answer")
Asked: TypeAlias = Literal["bases", "classes", "renamed"]
"""A field of the heads of files that was searched for a name."""

UNSETTLED: Final = 1
"""Stands for the files that something depends on which is still being found."""
_WHOLE: Final = 1
_OUTLINE: Final = 2
_BITS: Final = 2


class Searches:
    """The names for which all files were searched, whether any has them or not."""

    def __init__(self) -> None:
        """Begin with none."""
        self.heads: dict[Asked, set[str]] = {"bases": set(), "classes": set(), "renamed": set()}
        """Those sought in a field of the heads."""
        self.modules: set[str] = set()
        """Those by which a module was sought."""


class Dependencies:
    """Notes the files that are looked at while an answer is found, as bits by their positions.

    There are two for each file: one for all of it, and one for its outline alone, which tells how its
    classes are related to others, and what they bind. An answer that is remembered brings with it what
    was looked at when it was found.
    """

    def __init__(self) -> None:
        """Begin with nothing looked at."""
        self.files = 0
        """What was looked at for what is being found."""
        self.searches = Searches()
        """What all files were searched for."""
        self._aspect = _WHOLE
        self._unsettled: list[tuple[dict[Any, int], Any]] = []
        """Where files stand of answers that depend on what is still being found."""
        self._shared: dict[int, int] = {}
        """What is equal is kept once: there are many more answers than sets of files."""

    def on(self, position: int) -> None:
        """Note that a file is looked at."""
        self.files |= self._aspect << _place(position)

    def in_outline(self, find: Callable[[], Answer]) -> Answer:
        """Find an answer that depends on the outlines of the files that are looked at for it."""
        before, self._aspect = self._aspect, _OUTLINE
        try:
            return find()
        finally:
            self._aspect = before

    def of(self, known: dict[Key, int], key: Key, find: Callable[[], Answer]) -> Answer:
        """Find an answer, or have it from who remembers it, with the files that it depends on.

        Args:
            known: The files that each answer depends on, as far as that is known.
            key: The question.
            find: Finds the answer, or remembers it.

        Returns:
            The answer.
        """
        outer, self.files = self.files, 0
        try:
            return find()
        finally:
            self._note(known, key, known.get(key, 0) | self.files, outer)

    def of_circles(self, known: dict[Key, int], key: Key, find: Callable[[], tuple[Answer, bool]]) -> Answer:
        """Find an answer, on the way to which its question, or an earlier one, may come up again.

        Args:
            known: The files that each answer depends on, as far as that is known.
            key: The question.
            find: Finds the answer, and tells whether it is independent of what is still being found.

        Returns:
            The answer.
        """
        (outer, self.files), earlier = (self.files, 0), len(self._unsettled)
        is_settled = False
        try:
            answer, is_settled = find()
        finally:
            files = known.get(key, 0) | self.files | UNSETTLED
            if is_settled:
                files ^= UNSETTLED
                for answers, question in self._unsettled[earlier:]:
                    if question in answers:  # it may have been forgotten
                        answers[question] = (answers[question] | files) & ~UNSETTLED
                del self._unsettled[earlier:]
            self._note(known, key, files, outer)
        return answer

    def _note(self, known: dict[Key, int], key: Key, files: int, outer: int) -> None:
        known[key] = files = self._shared.setdefault(files, files)
        self.files = outer | files
        if files & UNSETTLED:
            self._unsettled.append((known, key))


def bits_of(position: int, *, outline: bool) -> int:
    """Give what stands for a file that has changed, in its outline too or only in the rest."""
    return (_WHOLE | _OUTLINE if outline else _WHOLE) << _place(position)


def moved(kept: Sequence[tuple[int, int]]) -> Callable[[int], int]:
    """Tell what bits become where files have moved.

    Args:
        kept: The positions of the files that are still there: where each was, and where it is.

    Returns:
        Gives the bits for the new positions from those for the old ones, without what is gone.
    """
    if all(before == now for before, now in kept):
        return lambda files: files
    runs: list[tuple[int, int, int]] = []
    for _, run in itertools.groupby(
        enumerate(kept), lambda each: (each[1][0] - each[0], each[1][1] - each[0])
    ):
        (_, (before, now)), *others = run
        runs.append((_place(before), _place(now), (1 << _BITS * (1 + len(others))) - 1))

    def bits(files: int) -> int:
        found = files & UNSETTLED
        for before, now, mask in runs:
            found |= (files >> before & mask) << now
        return found

    return bits


def _place(position: int) -> int:
    return UNSETTLED.bit_length() + _BITS * position
