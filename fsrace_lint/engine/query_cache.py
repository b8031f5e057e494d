"""Answers that are remembered, also where finding one leads back to the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from fsrace_lint.engine.dependencies import Dependencies

Key = TypeVar("Key", bound="Hashable")
Answer = TypeVar("Answer")

_OFTEN_ENOUGH: Final = 4
_NOTHING: Final = 1 << 30


def once(known: dict[Key, Answer], key: Key, meanwhile: Answer, find: Callable[[], Answer]) -> Answer:
    """Find an answer the first time, and remember it; where that fails, nothing is remembered.

    Args:
        known: The answers so far.
        key: The question.
        meanwhile: The answer to who asks while it is being found, final for him.
        find: Finds it.

    Returns:
        The answer.
    """
    if key not in known:
        known[key] = meanwhile
        try:
            known[key] = find()
        except BaseException:
            del known[key]
            raise
    return known[key]


class CycleDetector:
    """The questions that are being answered, by all memos that share them."""

    def __init__(self) -> None:
        """Start with no question asked."""
        self.depth = 0
        self.incomplete = 0
        """Counts the answers that could come out otherwise once what is being answered is known."""
        self._led_to = 0
        """The depths of the questions that the answer being found depends on, a bit for each."""
        self._open: list[object] = []
        """What stands for each question that is being answered, by its depth."""

    def note_cycle(self, depth: int) -> None:
        """Note that an answer was given that depends on the question asked at a depth."""
        self.incomplete += 1
        self._led_to |= 1 << depth

    def reuses(self, led_to: int, latest: object) -> bool:
        """Tell whether all questions that an answer depends on are still being answered, and note that if so.

        They are where the latest of them, which was asked within the others, still is.
        """
        depth = led_to.bit_length() - 1
        if depth >= self.depth or self._open[depth] is not latest:
            return False
        self.incomplete += 1
        self._led_to |= led_to
        return True

    def answer(self, find: Callable[[], Answer]) -> tuple[Answer, int, object]:
        """Find an answer, and tell on which earlier questions it depends; where there are none, it is final.

        Returns:
            The answer, the depths of these questions, a bit for each, and what stands for the latest of them.
        """
        depth = self.depth
        outer, self._led_to = self._led_to, 0
        self.depth += 1
        self._open.append(object())
        try:
            answer = find()
        finally:
            self.depth -= 1
            self._open.pop()
            led_to = self._led_to & ((1 << depth) - 1)
            self._led_to = outer | led_to
        return answer, led_to, self._open[led_to.bit_length() - 1] if led_to else None


class CombinedCycles:
    """Two circles, where an answer may depend on the questions of both."""

    def __init__(self, one: CycleDetector | CombinedCycles, other: CycleDetector | CombinedCycles) -> None:
        """Take the circles."""
        self._one, self._other = one, other

    @property
    def incomplete(self) -> int:
        """As that of `Circle`, for both of them."""
        return self._one.incomplete + self._other.incomplete


class QueryCache(Generic[Key, Answer]):
    """Remembers answers so that they do not depend on what was asked first, but for two bounds.

    A question that is asked while it is being answered gets `unknown`. What was
    found with the help of such an answer is remembered only while all that it depends on
    is being answered, but for the question that the circle started from: asked by itself,
    it could come out otherwise.
    """

    def __init__(self, unknown: Answer, deepest: int = 40, cycles: CycleDetector | None = None) -> None:
        """Start with nothing known.

        Args:
            unknown: The answer to what is being answered.
            deepest: Past so many questions within questions the answer is `unknown`, too.
            cycles: Shared by memos whose questions lead to those of the others.
        """
        self._unknown = unknown
        self._deepest = deepest
        self._circle = CycleDetector() if cycles is None else cycles
        self._known: dict[Key, Answer] = {}
        self._asked: dict[Key, int] = {}
        self._tries: dict[Key, int] = {}
        self._meanwhile: dict[Key, tuple[Answer, int, object]] = {}
        """Answers that are not final, with what each depends on, as `Circle.answer` tells it."""
        self._not_final: set[Key] = set()
        """Questions that came up so often that an answer was kept which is not final."""

    def get(self, key: Key, find: Callable[[], Answer]) -> Answer:
        """Give the answer for a key.

        Args:
            key: The question.
            find: Finds the answer; it may ask further questions, this one too.

        Returns:
            The answer, remembered or found.
        """
        if key in self._known:
            return self._known[key]
        if key in self._asked:
            self._circle.note_cycle(self._asked[key])
            return self._unknown
        if self._circle.depth >= self._deepest:
            self._circle.incomplete += 1
            return self._unknown
        if key in self._meanwhile:
            answer, led_to, latest = self._meanwhile[key]
            if self._circle.reuses(led_to, latest):
                return answer
            del self._meanwhile[key]
        self._asked[key] = self._circle.depth
        try:
            answer, led_to, latest = self._circle.answer(find)
        finally:
            del self._asked[key]
        tries = self._tries.pop(key, 0) + 1 if led_to else 0
        if not led_to or tries >= _OFTEN_ENOUGH:
            self._known[key] = answer
            if led_to:
                self._not_final.add(key)
        else:
            self._tries[key] = tries
            self._meanwhile[key] = answer, led_to, latest
        return answer

    def known(self, key: Key) -> Answer | None:
        """Give the answer for a key if it is remembered, else None."""
        return self._known.get(key)

    def remember(self, answers: dict[Key, Answer]) -> None:
        """Take answers that are known from elsewhere, to questions whose answers are not known here.

        Args:
            answers: The answers by their questions; it is nobody else's from now on.
        """
        answers.update(self._known)
        self._known = answers

    @property
    def answers(self) -> Mapping[Key, Answer]:
        """What is remembered, by the questions."""
        return self._known

    def is_being_answered(self, key: Key) -> bool:
        """Tell whether a question is being answered; who asks goes on with what is known so far."""
        if key not in self._asked:
            return False
        self._circle.note_cycle(self._asked[key])
        return True


class TrackedQueryCache(QueryCache[Key, Answer]):
    """The same, that notes the files which answers depend on."""

    def __init__(
        self, unknown: Answer, deepest: int, cycles: CycleDetector, dependencies: Dependencies
    ) -> None:
        """Start with nothing known, as the other does; `dependencies` notes what is looked at."""
        super().__init__(unknown, deepest, cycles)
        self._dependencies = dependencies
        self.files: dict[Key, int] = {}
        """The files that each answer depends on."""

    def get(self, key: Key, find: Callable[[], Answer]) -> Answer:
        """Give the answer for a key, as the other does."""
        if key in self._known:
            self._dependencies.files |= self.files[key]
            return self._known[key]
        return self._dependencies.of_circles(self.files, key, lambda: self._told(key, find))

    def _told(self, key: Key, find: Callable[[], Answer]) -> tuple[Answer, bool]:
        answer = super().get(key, find)
        return answer, key in self._known and key not in self._not_final

    def known(self, key: Key) -> Answer | None:
        """Give the answer for a key if it is remembered, else None."""
        self._dependencies.files |= self.files.get(key, 0)
        return super().known(key)
