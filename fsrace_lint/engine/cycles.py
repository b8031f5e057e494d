"""Recursion of queries into themselves: which results depend on queries that are still being computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class CycleDetector:
    """The queries that are being computed, for all that may lead to each other."""

    def __init__(self) -> None:
        """Start with nothing being computed."""
        self.depth = 0
        self.incomplete = 0
        """Counts the results that could differ once what is being computed is known."""
        self._depends_on = 0
        """The depths of the queries that the result being computed depends on, a bit for each."""
        self._active: list[object] = []
        """A token for each query that is being computed, by its depth."""

    def note_cycle(self, depth: int) -> None:
        """Note that a provisional result was given, which depends on the query asked at a depth."""
        self.incomplete += 1
        self._depends_on |= 1 << depth

    def reuses(self, depends_on: int, latest: object) -> bool:
        """Tell whether all queries that a result depends on are still being computed, and note that if so.

        They are where the latest of them, which was asked within the others, still is.
        """
        depth = depends_on.bit_length() - 1
        if depth >= self.depth or self._active[depth] is not latest:
            return False
        self.incomplete += 1
        self._depends_on |= depends_on
        return True

    def compute(self, find: Callable[[], Result]) -> tuple[Result, int, object]:
        """Compute a result, and tell on which earlier queries it depends; where there are none, it is final.

        Returns:
            The result, the depths of these queries, a bit for each, and the token of the latest of them.
        """
        depth = self.depth
        outer, self._depends_on = self._depends_on, 0
        self.depth += 1
        self._active.append(object())
        try:
            result = find()
        finally:
            self.depth -= 1
            self._active.pop()
            depends_on = self._depends_on & ((1 << depth) - 1)
            self._depends_on = outer | depends_on
        return result, depends_on, self._active[depends_on.bit_length() - 1] if depends_on else None


class CombinedCycles:
    """Two detectors, where a result may depend on the queries of both."""

    def __init__(self, one: CycleDetector | CombinedCycles, other: CycleDetector | CombinedCycles) -> None:
        """Take the detectors."""
        self._one, self._other = one, other

    @property
    def incomplete(self) -> int:
        """As that of `CycleDetector`, for both of them."""
        return self._one.incomplete + self._other.incomplete
