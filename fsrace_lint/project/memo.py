"""Answers that are remembered, also where finding one leads back to the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

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


class Circle:
    """The questions that are being answered, by all memos that share them."""

    def __init__(self) -> None:
        """Start with no question asked."""
        self.depth = 0
        self.incomplete = 0
        """Counts the answers that could come out otherwise once what is being answered is known."""
        self._open_until = _NOTHING

    def leads_back(self, depth: int) -> None:
        """Note that an answer was given that depends on the question asked at a depth."""
        self.incomplete += 1
        self._open_until = min(self._open_until, depth)

    def answer(self, find: Callable[[], Answer]) -> tuple[Answer, bool]:
        """Find an answer, and tell whether it is final.

        It is not where it depends on a question that was asked before this one.
        """
        depth = self.depth
        outer, self._open_until = self._open_until, _NOTHING
        self.depth += 1
        try:
            answer = find()
        finally:
            self.depth -= 1
            final = self._open_until >= depth
            self._open_until = min(outer, _NOTHING if final else self._open_until)
        return answer, final


class Memo(Generic[Key, Answer]):
    """Remembers answers so that they do not depend on what was asked first, but for two bounds.

    A question that is asked while it is being answered gets `unknown`. What was
    found with the help of such an answer is not remembered, but for the question
    that the circle started from: asked by itself, it could come out otherwise.
    """

    def __init__(self, unknown: Answer, deepest: int = 40, circle: Circle | None = None) -> None:
        """Start with nothing known.

        Args:
            unknown: The answer to what is being answered.
            deepest: Past so many questions within questions the answer is `unknown`, too.
            circle: Shared by memos whose questions lead to those of the others.
        """
        self._unknown = unknown
        self._deepest = deepest
        self._circle = Circle() if circle is None else circle
        self._known: dict[Key, Answer] = {}
        self._asked: dict[Key, int] = {}
        self._tries: dict[Key, int] = {}

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
            self._circle.leads_back(self._asked[key])
            return self._unknown
        if self._circle.depth >= self._deepest:
            return self._unknown
        self._asked[key] = self._circle.depth
        try:
            answer, final = self._circle.answer(find)
        finally:
            del self._asked[key]
        tries = 0 if final else self._tries.pop(key, 0) + 1
        if final or tries >= _OFTEN_ENOUGH:
            self._known[key] = answer
        else:
            self._tries[key] = tries
        return answer

    def known(self, key: Key) -> Answer | None:
        """Give the answer for a key if it is remembered, else None."""
        return self._known.get(key)

    def is_being_answered(self, key: Key) -> bool:
        """Tell whether a question is being answered; who asks goes on with what is known so far."""
        if key not in self._asked:
            return False
        self._circle.leads_back(self._asked[key])
        return True


class Followed(Generic[Key, Answer]):
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
        self._deepest = deepest
        self._reached = 0
        """The deepest level that was looked at for what is being found."""
        self._whole: dict[Key, tuple[int, Answer]] = {}
        self._cut: dict[tuple[Key, int], Answer] = {}

    def get(self, key: Key, depth: int, find: Callable[[], Answer]) -> Answer:
        """Give what is found from a level on.

        Args:
            key: Where to begin.
            depth: The level that this is.
            find: Finds it; asks for what is called at the next level.

        Returns:
            The answer, remembered or found.
        """
        levels, answer = self._whole.get(key, (self._deepest + 1, self._nothing))
        reached = depth + levels
        if depth <= self._deepest < reached:
            if (key, depth) in self._cut:
                answer = self._cut[key, depth]
            else:
                answer, reached = self._find(key, depth, find)
        self._reached = max(self._reached, reached)
        return answer if depth <= self._deepest else self._nothing

    def _find(self, key: Key, depth: int, find: Callable[[], Answer]) -> tuple[Answer, int]:
        outer, self._reached = self._reached, depth
        try:
            answer = find()
        finally:
            reached, self._reached = self._reached, outer
        if reached > self._deepest:
            self._cut[key, depth] = answer
        else:
            self._whole[key] = reached - depth, answer
        return answer, reached
