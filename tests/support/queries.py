"""Queries whose results are computed by a function that is passed with each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.query import query, recursive_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.engine.depth_budget import DepthBudget


Result = TypeVar("Result")


class Cyclic(Generic[Result]):
    """A query that can depend on itself."""

    def __init__(self, provisional: Result, limit: int = 40, cycles: CycleDetector | None = None) -> None:
        class Asked:
            def __init__(self) -> None:
                self.cycles = cycles or CycleDetector()
                self.finds: dict[object, Callable[[], Any]] = {}

            @query(provisional=provisional, shared=True, limit=limit)
            def get(self, key: object) -> Any:
                return self.finds[key]()

        self._asked = Asked()

    def get(self, key: object, find: Callable[[], Result]) -> Result:
        """Return the result for a key, computed by `find`."""
        self._asked.finds[key] = find
        return cast("Result", self._asked.get(key))

    def is_active(self, key: object) -> bool:
        """Return whether a key is being computed."""
        return type(self._asked).get.table(self._asked).is_active(key)


class Budgeted(Generic[Result]):
    """A recursive query with a limited depth."""

    def __init__(self, budget: DepthBudget, beyond: Result, *, once: bool = False) -> None:
        class Asked:
            def __init__(self) -> None:
                self.budget = budget
                self.finds: dict[object, Callable[[], Any]] = {}

            @recursive_query(beyond=beyond, once=once)
            def get(self, key: object, depth: int) -> Any:  # the depth decides which results are cached
                return self.finds[key]()

        self._asked = Asked()

    def get(self, key: object, depth: int, find: Callable[[], Result]) -> Result:
        """Return the result for a key at a depth, computed by `find`."""
        self._asked.finds[key] = find
        return cast("Result", self._asked.get(key, depth))
