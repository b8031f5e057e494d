"""The words in names and paths that show their purpose: `words.toml`, and one matcher for all of them."""

from __future__ import annotations

import functools
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
    "group",
    "whole group",
    "command",
    "setup",
    "settings",
    "queue",
    "converter",
    "rehearsal",
]
Doubt: TypeAlias = Literal["filesystem", "collective", "coordinator", "undivided", "sharding"]
"""Categories of names that make a fix more cautious if nothing else is known about the object."""
InCommands: TypeAlias = Literal["launcher"]
"""Categories of the words of commands, which whitespace separates."""

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words(text: str) -> list[str]:
    """Return the words of a name or a path in order, in lower case: `FileLock` contains `file` and `lock`."""
    return [word.lower() for word in _WORD.findall(text)]


@functools.cache
def _lexicon() -> Mapping[str, frozenset[str]]:
    data = pkgutil.get_data(__name__, "words.toml") or b""
    return {meaning: frozenset(listed) for meaning, listed in tomllib.loads(data.decode()).items()}


def meaning(what: Meaning | Doubt | InCommands) -> frozenset[str]:
    """Return the words or names with a meaning."""
    return _lexicon()[what]


@functools.lru_cache(maxsize=4096)
def says(text: str, what: Meaning) -> bool:
    """Return whether a word of a name or a path has a meaning."""
    return not meaning(what).isdisjoint(words(text))
