"""The purpose of a path, by the names around it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fsrace_lint.catalog.lexicon import meaning, words

if TYPE_CHECKING:
    from collections.abc import Iterable


class Purpose(enum.Enum):
    """The purpose of a path."""

    RESULT = "what a run leaves behind: checkpoints, logs, metrics"
    CACHE = "what could be made again: a cache, a copy of the data, something for the moment"
    UNKNOWN = "something else"


def purpose(texts: Iterable[str], users: Iterable[str] = ()) -> Purpose:
    """Return the purpose of a path.

    Args:
        texts: The spelling of the path, and its content.
        users: The names of the functions that use it. Ignored if the path is named like a checkpoint.

    Returns:
        The purpose. If some words suggest a cache and others a result, it is a cache. A shard in the path
        of a checkpoint suggests neither.
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
