"""Answers that are remembered, also where finding one leads back to the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Key = TypeVar("Key", bound="Hashable")
Answer = TypeVar("Answer")

_OFTEN_ENOUGH: Final = 4
_NOTHING: Final = 1 << 30


class Memo(Generic[Key, Answer]):
    """Remembers answers so that they do not depend on what was asked first.

    A question that is asked while it is being answered gets `unknown`. What was
    found with the help of such an answer is not remembered, but for the question
    that the circle started from: asked by itself, it could come out otherwise.
    """

    def __init__(self, unknown: Answer, deepest: int = 40) -> None:
        """Start with nothing known; past `deepest` questions within questions the answer is `unknown`."""
        self._unknown = unknown
        self._deepest = deepest
        self._known: dict[Key, Answer] = {}
        self._asked: dict[Key, int] = {}
        self._tries: dict[Key, int] = {}
        self._open_until = _NOTHING

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
            self._open_until = min(self._open_until, self._asked[key])
            return self._unknown
        depth = len(self._asked)
        if depth >= self._deepest:
            return self._unknown
        outer, self._open_until = self._open_until, _NOTHING
        self._asked[key] = depth
        try:
            answer = find()
        finally:
            del self._asked[key]
        self._tries[key] = self._tries.get(key, 0) + 1
        if self._open_until >= depth or self._tries[key] >= _OFTEN_ENOUGH:
            self._known[key] = answer
        self._open_until = min(outer, self._open_until if self._open_until < depth else _NOTHING)
        return answer
