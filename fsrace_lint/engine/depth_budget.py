"""The steps that lead from a question to its answer, of which there are only so many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fsrace_lint.engine.query_cache import CycleDetector

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.engine.query_cache import CombinedCycles

Key = TypeVar("Key", bound="Hashable")
Answer = TypeVar("Answer")
Anything = TypeVar("Anything")


class DepthBudget:
    """How far the steps from what is asked led so far.

    All who take such steps share one.
    """

    def __init__(
        self, limit: int, cycles: CycleDetector | CombinedCycles, dependencies: Dependencies | None = None
    ) -> None:
        """Start with nothing asked.

        Args:
            limit: The last step that is taken.
            cycles: Tells whether what was found is final.
            dependencies: Notes the files that are looked at, if somebody wants to know.
        """
        self.deepest = limit
        self.cycles = cycles
        self.dependencies = dependencies
        self.used = 0
        """The last step that was looked at for what is being found; past the deepest, some was left out."""
        self.provisional = 0
        """How often something was left out because it was being looked for."""

    def exhausted(self, depth: int) -> bool:
        """Tell whether a step is one too many; whoever is on the way has come as far as this."""
        if depth > self.used:
            self.used = depth
        return depth > self.deepest

    def cache(self, usual: Answer) -> BudgetedCache[Any, Answer]:
        """Give what remembers answers that are found on this trail, `usual` for most questions."""
        return (
            BudgetedCache(self, usual)
            if self.dependencies is None
            else _Tracked(self, usual, self.dependencies)
        )

    def with_fresh_budget(self, find: Callable[[], Answer]) -> Answer:
        """Find an answer with all steps left, whatever is under way."""
        outer, self.used = self.used, 0
        try:
            return find()
        finally:
            self.used = outer


class BudgetedCache(Generic[Key, Answer]):
    """Remembers answers for all who ask with as many steps left, or with so many that all steps fit.

    So an answer does not depend on how its question was come by.
    """

    def __init__(self, budget: DepthBudget, usual: Answer) -> None:
        """Start with nothing known.

        Args:
            budget: Shared by all whose questions lead to each other.
            usual: The answer to most questions, of which little is kept.
        """
        self._trail = budget
        self._usual = tuple((steps, usual) for steps in range(budget.deepest + 1))
        self._whole: dict[Key, tuple[int, Answer]] = {}
        """The answers that took no more steps than there were, each with how many."""
        self._cut: dict[tuple[Key, int], Answer] = {}
        """Those for which there were too few, by the step at which they were asked for."""

    def get(self, question: Key, depth: int, find: Callable[[], Answer]) -> Answer:
        """Give an answer.

        Args:
            question: What is asked.
            depth: The step at which it is.
            find: Finds the answer, in further steps.

        Returns:
            The answer, remembered or found.
        """
        budget, known = self._trail, self._whole.get(question)
        if known is not None and (reached := depth + known[0]) <= budget.deepest:
            if reached > budget.used:
                budget.used = reached
            return known[1]
        if self._cut and (question, depth) in self._cut:
            budget.used = budget.deepest + 1
            return self._cut[question, depth]
        incomplete, circles = budget.cycles.incomplete, budget.provisional
        outer, budget.used = budget.used, depth
        try:
            answer = find()
        finally:
            reached = budget.used
            budget.used = max(outer, reached)
        if incomplete == budget.cycles.incomplete and circles == budget.provisional:
            if reached <= budget.deepest:
                steps, usual = reached - depth, self._usual
                self._whole[question] = usual[steps] if answer is usual[0][1] else (steps, answer)
            else:
                self._cut[question, depth] = answer
        return answer


class _Tracked(BudgetedCache[Key, Answer]):
    """The same, that notes the files which answers depend on."""

    def __init__(self, budget: DepthBudget, usual: Answer, dependencies: Dependencies) -> None:
        super().__init__(budget, usual)
        self._dependencies = dependencies
        self._files: dict[Key, int] = {}

    def get(self, question: Key, depth: int, find: Callable[[], Answer]) -> Answer:
        return self._dependencies.of(
            self._files, question, lambda: BudgetedCache.get(self, question, depth, find)
        )


class DepthLimitedCache(Generic[Key, Answer]):
    """Remembers what is found by following calls so many levels deep, and no deeper.

    Where nothing was cut off, it is the same from every depth that leaves room for it.
    """

    def __init__(self, nothing: Answer, deepest: int) -> None:
        """Start with nothing known.

        Args:
            nothing: What is found below the deepest level.
            deepest: That level.
        """
        self._nothing = nothing
        self._trail = DepthBudget(deepest, CycleDetector())
        self._settled: BudgetedCache[Key, Answer] = BudgetedCache(self._trail, nothing)

    def get(self, key: Key, depth: int, find: Callable[[], Answer]) -> Answer:
        """Give what is found from a level on.

        Args:
            key: Where to begin.
            depth: The level that this is.
            find: Finds it; asks for what is called at the next level.

        Returns:
            The answer, remembered or found.
        """
        return self._nothing if self._trail.exhausted(depth) else self._settled.get(key, depth, find)


class CycleSafeCache(Generic[Key, Answer]):
    """What was met on the way to one answer, which may lead in circles and to the same by many ways.

    What is not settled is not looked at again from as far or further away. Where it is met while it is
    looked for, there is no answer: whatever comes of it is found by the one who looks.
    """

    def __init__(self, budget: DepthBudget) -> None:
        """Begin with nothing under way."""
        self._trail = budget
        self._settled: BudgetedCache[Key, Answer | None] = budget.cache(None)
        self._met: dict[Key, tuple[int, Answer | None]] | None = None

    def with_fresh_budget(self, find: Callable[[], Anything]) -> Anything:
        """Find something as if nothing were under way."""
        before, self._met = self._met, None
        try:
            return self._trail.with_fresh_budget(find)
        finally:
            self._met = before

    def get(self, question: Key, depth: int, find: Callable[[], Answer | None]) -> Answer | None:
        """Give the answer to a question that lies `depth` steps away from the one that is to be answered."""
        return self._settled.get(question, depth, lambda: self._found(question, depth, find))

    def _found(self, question: Key, depth: int, find: Callable[[], Answer | None]) -> Answer | None:
        if self._met is None:
            self._met = {}
            try:
                return self._found(question, depth, find)
            finally:
                self._met = None
        before, known = self._met.get(question, (depth + 1, None))
        if known is not None or before <= depth:
            self._trail.provisional += 1
            return known
        self._met[question] = depth, None
        found = find()
        self._met[question] = depth, found
        return found
