"""Cycle detection: which results depend on queries that are still being computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


class CycleDetector:
    """The stack of queries being computed, shared by all queries that may call each other."""

    def __init__(self) -> None:
        """Initialize an empty stack."""
        self.depth = 0
        self.incomplete = 0
        """The number of results so far that can change once the active queries are finished."""
        self._depends_on = 0
        """The depths of the queries that the current result depends on, as a bit set."""
        self._active: list[object] = []
        """A token for each query that is being computed, by depth."""

    def note_cycle(self, depth: int) -> None:
        """Record that the query at a depth returned a provisional result."""
        self.incomplete += 1
        self._depends_on |= 1 << depth

    def reuses(self, depends_on: int, latest: object) -> bool:
        """Return whether all queries that a result depends on are still active, and if so record that."""
        depth = depends_on.bit_length() - 1
        if depth >= self.depth or self._active[depth] is not latest:
            return False
        self.incomplete += 1
        self._depends_on |= depends_on
        return True

    def compute(self, find: Callable[[], Result]) -> tuple[Result, int, object]:
        """Compute a result and the active queries that it depends on.

        Returns:
            The result, the depths of these queries as a bit set, and the token of the latest one. The result
            is final if the bit set is empty.
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
    """Two detectors as one, for results that may depend on the queries of both."""

    def __init__(self, one: CycleDetector | CombinedCycles, other: CycleDetector | CombinedCycles) -> None:
        """Combine two detectors."""
        self._one, self._other = one, other

    @property
    def incomplete(self) -> int:
        """The sum of `CycleDetector.incomplete` of both detectors."""
        return self._one.incomplete + self._other.incomplete
