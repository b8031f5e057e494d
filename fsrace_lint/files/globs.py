"""The file patterns of the settings."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_STAR: Final = ".*"
_FOLDERS: Final = "(?:.*/)?"
_GROUPS: Final = itertools.count()
"""Numbers for group names, which must stay unique when patterns are combined."""


class Glob:
    """A pattern for files and directories, as in `exclude` and `per-file-ignores`.

    * A pattern without a slash matches the name of a file or directory anywhere.
    * A pattern with a slash is a path relative to the project root.
    * A pattern that ends in a slash matches only directories.

    `*` and `?` match as in `fnmatch`, so `*` crosses slashes. `**/` also matches zero directories.
    """

    __slots__ = ("_match", "anchored", "folders_only", "pattern")

    def __init__(self, text: str) -> None:
        """Translate a pattern.

        Args:
            text: The pattern as the user wrote it.

        Raises:
            ValueError: The pattern is empty or malformed.
        """
        body = text.replace("\\", "/")
        self.folders_only = body.endswith("/")
        self.anchored = "/" in body.rstrip("/")
        body = body.strip("/")
        while body.startswith("./"):
            body = body[2:].lstrip("/")
        if body in ("", "."):
            raise ValueError("an empty pattern")
        pieces = map(_translate, re.split(r"(\*\*/|\*+|\?|\[!?\]?[^\]/]*\])", body))
        self.pattern = _joined(pieces)
        """A regular expression for a whole name or path."""
        self._match: Callable[[str], object] | None = None
        if "[" in body:
            try:
                self._match = _whole(self.pattern)
            except re.error as error:
                raise ValueError(f"a malformed pattern: {error}") from error

    def covers(self, path: str) -> bool:
        """Return whether the pattern matches a file or one of its parent directories.

        Args:
            path: The path of the file relative to the project root, with forward slashes.
        """
        match = self._match = self._match or _whole(self.pattern)
        parts = path.split("/")
        last = len(parts) - 1 if self.folders_only else len(parts)
        if self.anchored:
            return any(match("/".join(parts[:end])) for end in range(1, last + 1))
        return any(match(part) for part in parts[:last])


def _whole(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.DOTALL).fullmatch


def _joined(pieces: Iterable[str]) -> str:
    """Join pieces so that the text between two stars is searched for only once.

    The first match is enough, because the second star matches the rest. Trying other matches would take
    exponential time for patterns with many stars.
    """
    text, held, has_star = "", "", False
    for piece in pieces:
        if piece == _STAR:
            text += _found_once(held) if has_star else held
        elif piece == _FOLDERS:
            text += f"{_STAR * has_star}{held}{_FOLDERS}"
        else:
            held += piece
            continue
        held, has_star = "", piece == _STAR
    return f"{text}{_STAR * has_star}{held}"


def _found_once(text: str) -> str:
    group = f"g{next(_GROUPS)}"
    return f"(?=(?P<{group}>{_STAR}?{text}))(?P={group})"


def _translate(piece: str) -> str:
    """Translate one piece of a pattern to a regular expression."""
    if piece == "**/":
        return _FOLDERS
    if piece.startswith("*"):
        return _STAR
    if piece == "?":
        return "[^/]"
    if piece.startswith("[") and piece.endswith("]"):
        negated = piece.startswith("[!")
        inside = re.sub(r"([\[\]\\^&~|])", r"\\\1", piece[2 if negated else 1 : -1])
        inside = inside.replace("--", r"-\-")
        return f"[^/{inside}]" if negated else f"[{inside}]"
    return re.escape(piece)


@functools.lru_cache(maxsize=1024)
def glob(text: str) -> Glob:
    """Return the translated pattern of a text, cached.

    Args:
        text: The pattern as the user wrote it.

    Raises:
        ValueError: The pattern is empty or malformed.
    """
    return Glob(text)


def matcher(globs: Sequence[Glob]) -> Callable[[str, str], bool]:
    """Combine patterns, so that each entry needs only two matches.

    Args:
        globs: The patterns.

    Returns:
        A function of a name and a path that returns whether a pattern matches the entry itself.
    """
    matches = []
    for wanted in (False, True):
        texts = dict.fromkeys(g.pattern for g in globs if g.anchored is wanted)
        matches.append(_whole("|".join(texts) or "(?!)"))
    names, paths = matches
    return lambda name, path: bool(names(name) or paths(path))
