"""A depth budget for recursive queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.engine.cycles import CombinedCycles, CycleDetector

Result = TypeVar("Result")


class DepthBudget:
    """How many steps of recursion queries may take from the one that is asked first; they share one."""

    def __init__(self, limit: int, cycles: CycleDetector | CombinedCycles) -> None:
        """Start with nothing asked.

        Args:
            limit: The last step that is taken.
            cycles: Tells whether a result is final.
        """
        self.limit = limit
        self.cycles = cycles
        self.used = 0
        """The last step that was taken for what is being computed; past the limit, some was left out."""
        self.provisional = 0
        """How often something was left out because it was being computed."""
        self.visits: dict[object, tuple[int, object]] | None = None
        """What was come by on the way to one result, and how deep; None where nothing is under way."""

    def exhausted(self, depth: int) -> bool:
        """Tell whether a step is one too many; the query that is being computed has come as far as this."""
        if depth > self.used:
            self.used = depth
        return depth > self.limit

    def with_fresh_budget(self, find: Callable[[], Result]) -> Result:
        """Compute something with all steps left, whatever is under way."""
        used, self.used = self.used, 0
        visits, self.visits = self.visits, None
        try:
            return find()
        finally:
            self.used, self.visits = used, visits
