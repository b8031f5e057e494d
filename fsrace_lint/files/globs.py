"""The patterns for files and folders that settings are written with."""

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
"""Numbers for groups: several patterns are put into one."""


class Glob:
    """A pattern for files and folders, as `exclude` and `per-file-ignores` write them.

    A pattern without a slash means the name of a file or of a folder, wherever
    it stands; one with a slash is a path from the project root; one that ends
    in a slash means folders only. `*` and `?` match as in `fnmatch`, so `*`
    crosses slashes, and `**/` also matches no folder at all.
    """

    __slots__ = ("_match", "anchored", "folders_only", "pattern")

    def __init__(self, text: str) -> None:
        """Translate a pattern.

        Args:
            text: The pattern as the user wrote it.

        Raises:
            ValueError: The pattern is empty or not well formed.
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
        """The source of a regular expression for the whole of a name or a path."""
        self._match: Callable[[str], object] | None = None
        if "[" in body:
            try:
                self._match = _whole(self.pattern)
            except re.error as error:
                raise ValueError(f"a malformed pattern: {error}") from error

    def covers(self, path: str) -> bool:
        """Tell whether this means a file, or a folder that the file lies in.

        Args:
            path: The file's path from the project root, with forward slashes.

        Returns:
            True if the file or one of its folders matches.
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
    """Put pieces together, so that what stands between two stars is looked for once.

    The first place will do, as the second star takes the rest: so no other one is tried when
    something does not match later on, which would take time without end where there are many stars.
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
    """Turn one piece of a pattern into the source of a regular expression."""
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
    """Give the translated pattern for a text, made once.

    Args:
        text: The pattern as the user wrote it.

    Returns:
        The pattern.

    Raises:
        ValueError: The pattern is empty or not well formed.
    """
    return Glob(text)


def matcher(globs: Sequence[Glob]) -> Callable[[str, str], bool]:
    """Put patterns together, so that an entry costs two matches.

    Args:
        globs: The patterns.

    Returns:
        A function that tells of a name and a path whether a pattern means this very entry.
    """
    matches = []
    for wanted in (False, True):
        texts = dict.fromkeys(g.pattern for g in globs if g.anchored is wanted)
        matches.append(_whole("|".join(texts) or "(?!)"))
    names, paths = matches
    return lambda name, path: bool(names(name) or paths(path))
