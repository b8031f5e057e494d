"""A depth budget for recursive queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.engine.cycles import CombinedCycles, CycleDetector

Result = TypeVar("Result")


class DepthBudget:
    """The limit on recursion steps, which all queries called from one outermost query share."""

    def __init__(self, limit: int, cycles: CycleDetector | CombinedCycles) -> None:
        """Initialize an unused budget.

        Args:
            limit: The last step that is taken.
            cycles: Detects whether a result is final.
        """
        self.limit = limit
        self.cycles = cycles
        self.used = 0
        """The deepest step of the result being computed. Beyond the limit, steps were skipped."""
        self.provisional = 0
        """The number of results taken from `visits`, which can be incomplete."""
        self.visits: dict[object, tuple[int, object]] | None = None
        """The depth and result of each key visited in the outermost computation; None outside of one."""

    def exhausted(self, depth: int) -> bool:
        """Return whether a step is beyond the limit, and record that the current query reached it."""
        if depth > self.used:
            self.used = depth
        return depth > self.limit

    def with_fresh_budget(self, find: Callable[[], Result]) -> Result:
        """Compute a result with the full budget, regardless of the steps taken so far."""
        used, self.used = self.used, 0
        visits, self.visits = self.visits, None
        try:
            return find()
        finally:
            self.used, self.visits = used, visits
