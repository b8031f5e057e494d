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
        self.truncated = 0
        """The number of results so far that were cut because too many queries were nested."""
        self._depends_on = 0
        """The depths of the queries that the current result depends on, as a bit set."""
        self._active: list[object] = []
        """A token for each query that is being computed, by depth."""

    def note_cycle(self, depth: int) -> None:
        """Record that the query at a depth returned a provisional result."""
        self._depends_on |= 1 << depth

    def begin(self) -> int:
        """Start to collect the active queries that a result depends on. Pass the returned value to `end`."""
        outer, self._depends_on = self._depends_on, 0
        return outer

    def end(self, outer: int) -> Dependence | None:
        """Return the active queries that the result depends on, or None if the result is final."""
        inner = self._depends_on & ((1 << self.depth) - 1)
        self._depends_on = outer | inner
        return Dependence(self, inner, self._active[inner.bit_length() - 1]) if inner else None

    def compute(self, find: Callable[[], Result]) -> tuple[Result, Dependence | None]:
        """Compute the result of a query, which is active meanwhile.

        Returns:
            The result, and the other active queries that it depends on.
        """
        outer = self.begin()
        self.depth += 1
        self._active.append(object())
        dependence = None
        try:
            result = find()
        finally:
            self.depth -= 1
            self._active.pop()
            dependence = self.end(outer)
        return result, dependence

    def is_active(self, depth: int, token: object) -> bool:
        """Return whether the query at a depth is the one with this token."""
        return depth < self.depth and self._active[depth] is token

    def depend_on(self, depths: int) -> None:
        """Record that the current result depends on the queries at these depths."""
        self._depends_on |= depths


class Dependence:
    """The active queries that a result depends on."""

    __slots__ = ("_cycles", "_depths", "_latest")

    def __init__(self, cycles: CycleDetector, depths: int, latest: object) -> None:
        """Initialize with the depths of the queries as a bit set, and the token of the deepest one."""
        self._cycles, self._depths, self._latest = cycles, depths, latest

    def holds(self) -> bool:
        """Return whether all these queries are still active, so that the result may be reused."""
        return self._cycles.is_active(self._depths.bit_length() - 1, self._latest)

    def inherit(self) -> None:
        """Record that the current result depends on the same queries."""
        self._cycles.depend_on(self._depths)


class CombinedCycles:
    """Two detectors as one, for results that may depend on the queries of both."""

    def __init__(self, one: CycleDetector, other: CycleDetector) -> None:
        """Combine two detectors."""
        self._one, self._other = one, other

    @property
    def truncated(self) -> int:
        """The sum of `CycleDetector.truncated` of both detectors."""
        return self._one.truncated + self._other.truncated

    def begin(self) -> tuple[int, int]:
        """Start to collect the active queries that a result depends on; see `CycleDetector.begin`."""
        return self._one.begin(), self._other.begin()

    def end(self, outer: tuple[int, int]) -> CombinedDependence | None:
        """Return the active queries that the result depends on, or None if the result is final."""
        found = self._one.end(outer[0]), self._other.end(outer[1])
        return CombinedDependence(found) if any(found) else None


class CombinedDependence:
    """The active queries of two detectors that a result depends on."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[Dependence | None, ...]) -> None:
        """Initialize with the queries of each detector."""
        self._parts = [part for part in parts if part is not None]

    def holds(self) -> bool:
        """Return whether all these queries are still active, so that the result may be reused."""
        return all(part.holds() for part in self._parts)

    def inherit(self) -> None:
        """Record that the current result depends on the same queries."""
        for part in self._parts:
            part.inherit()
