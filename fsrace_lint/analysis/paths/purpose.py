"""What a path is for, as far as the names around it tell."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fsrace_lint.catalog.lexicon import meaning, words

if TYPE_CHECKING:
    from collections.abc import Iterable


class Purpose(enum.Enum):
    """What a path is for."""

    RESULT = "what a run leaves behind: checkpoints, logs, metrics"
    CACHE = "what could be made again: a cache, a copy of the data, something for the moment"
    UNKNOWN = "something else"


def purpose(texts: Iterable[str], users: Iterable[str] = ()) -> Purpose:
    """Tell what a path is for.

    Args:
        texts: How it is spelled, and what it holds.
        users: The names of those that use it, which tell nothing of a path that says it is of checkpoints.

    Returns:
        The purpose; where some words speak for a cache and others for a result, a cache.
        Beside a checkpoint a shard is a part of it, and speaks for neither.
    """
    found = _words(texts)
    if not found & meaning("checkpoint"):
        found |= _words(users)
    if found & meaning("checkpoint"):
        found -= meaning("part")
    if found & meaning("cache"):
        return Purpose.CACHE
    return Purpose.RESULT if found & meaning("result") else Purpose.UNKNOWN


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in words(text)}
