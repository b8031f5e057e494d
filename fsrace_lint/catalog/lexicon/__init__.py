"""The words in names and paths that show their purpose: `words.toml`, and one matcher for all of them."""

from __future__ import annotations

import functools
import itertools
import pkgutil
import re
import sys
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping

Meaning: TypeAlias = Literal[
    "lock",
    "cache",
    "result",
    "checkpoint",
    "part",
    "divided",
    "group",
    "whole group",
    "command",
    "setup",
    "settings",
    "queue",
    "loader",
    "converter",
    "rehearsal",
    "first process",
    "process",
    "process of a node",
    "process of a group",
    "kind of process",
    "number of a process",
    "own",
    "distributed",
    "of a job",
    "job",
    "nodes",
    "barrier",
    "resumption",
]
Doubt: TypeAlias = Literal[
    "filesystem",
    "collective",
    "coordinator",
    "undivided",
    "sharding",
    "stream",
    "directory",
    "checksum",
    "claim",
]
"""Categories of names that make a fix more cautious if nothing else is known about the object."""
InCommands: TypeAlias = Literal["launcher"]
"""Categories of the words of commands, which whitespace separates."""
Names: TypeAlias = Literal["loading", "dumping", "bridging"]
"""Categories of whole names."""

_ZERO: Final = re.compile(r"(?<![0-9])0(?![0-9])")
_FLAGS: Final = frozenset({"is", "use", "using", "with", "enable", "do"})
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words(text: str) -> list[str]:
    """Return the words of a name or a path in order, in lower case: `FileLock` contains `file` and `lock`."""
    return [word.lower() for word in _WORD.findall(text)]


@functools.cache
def _lexicon() -> Mapping[str, frozenset[str]]:
    data = pkgutil.get_data(__name__, "words.toml") or b""
    return {meaning: frozenset(listed) for meaning, listed in tomllib.loads(data.decode()).items()}


def meaning(what: Meaning | Doubt | InCommands | Names) -> frozenset[str]:
    """Return the words or names with a meaning."""
    return _lexicon()[what]


@functools.lru_cache(maxsize=4096)
def says(text: str, what: Meaning) -> bool:
    """Return whether a word of a name or a path has a meaning."""
    return not meaning(what).isdisjoint(words(text))


_SAVING: Final = re.compile(r"_?(save|checkpoint|sync|gather)")


def may_save_with_all(callee: str) -> bool:
    """Return whether a call, as spelled in the source, may be a save that every rank must make."""
    owner, _, last = callee.rpartition(".")
    word = owner.rpartition(".")[2].strip("_()").lower()
    if last == "save_pretrained":
        return not word.endswith(tuple(meaning("undivided")))
    return bool(_SAVING.match(last)) and word.endswith(tuple(meaning("coordinator")))


@functools.lru_cache(maxsize=4096)
def checks_first_process(name: str) -> str | None:
    """Return the scope of the rank check that a name states, or None.

    Args:
        name: The name of a function or a value, such as `is_local_root_worker`, or `is_rank_0`.

    Returns:
        `global`, `local`, or `group`.
    """
    first, *rest = words(_ZERO.sub("_zero", name)) or [""]
    if first == "get" and rest:
        first, *rest = rest
    firsts = [word for word in rest if word in meaning("first process")]
    if first != "is" or len(firsts) != 1 or rest == ["zero"]:
        return None
    at = rest.index(firsts[0])
    before = [one for one, following in itertools.pairwise(rest[: at + 1]) if following != "parallel"]
    others = {*before, *rest[at + 1 :]} - meaning("process")
    if not others:
        return "global"
    if others <= meaning("process of a node") and "node" not in rest[at:]:
        return "local"
    return "group" if others <= meaning("process of a group") else None


@functools.lru_cache(maxsize=4096)
def identifies_process(name: str) -> bool:
    """Return whether a value tells a process from the others: `trainer_id`, `current_endpoint`, `rank`."""
    found = frozenset(words(name))
    kinds, numbers = meaning("kind of process"), meaning("number of a process")
    is_one = not found.isdisjoint(kinds) and not found.isdisjoint(numbers)
    return is_one and found <= kinds | numbers | meaning("own")


@functools.lru_cache(maxsize=4096)
def asks_whether_distributed(name: str) -> bool:
    """Return whether a name, such as `use_ddp`, states a flag that is true if a job has several processes."""
    first, *rest = words(name) or [""]
    others = {*rest} - meaning("distributed")
    return first in _FLAGS and len(others) < len({*rest}) and others <= meaning("of a job")
