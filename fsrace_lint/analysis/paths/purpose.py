"""What a path is for, as far as the names around it tell."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CACHE: Final = frozenset(
    {
        "build", "cache", "cached", "caches", "caching", "compile", "compiled", "corpus", "data", "dataset",
        "datasets", "download", "downloaded", "downloads", "extract", "extracted", "index", "indices", "lock",
        "lockfile", "mmap", "prepare", "preprocess", "scratch", "shard", "shards", "temp", "tmp", "token",
        "tokenizer", "vocab",
    }
)  # fmt: skip
_RESULT: Final = frozenset(
    {
        "args", "best", "checkpoint", "checkpointer", "checkpoints", "ckpt", "ckpts", "config", "dump", "exp",
        "experiment", "experiments", "export", "history", "hparams", "last", "latest", "log", "logdir",
        "logging", "logs", "metadata", "metrics", "model", "models", "optimizer", "out", "outdir", "output",
        "outputs", "params", "result", "results", "run", "runs", "save", "saved", "saver", "scores", "state",
        "summary", "weights",
    }
)  # fmt: skip
_CHECKPOINT: Final = frozenset({"checkpoint", "checkpointer", "checkpoints", "ckpt", "ckpts"})
_OF_CHECKPOINTS_TOO: Final = frozenset({"shard", "shards"})


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
    words = _words(texts)
    if not words & _CHECKPOINT:
        words |= _words(users)
    if words & _CHECKPOINT:
        words -= _OF_CHECKPOINTS_TOO
    if words & _CACHE:
        return Purpose.CACHE
    return Purpose.RESULT if words & _RESULT else Purpose.UNKNOWN


def _words(texts: Iterable[str]) -> set[str]:
    return {word.lower() for text in texts for word in _WORD.findall(text)}
