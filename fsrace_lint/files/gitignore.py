"""Lines of `.gitignore` files: simple lines are combined, and pathspec handles the rest."""

from __future__ import annotations

import functools
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.files.bounded_read import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NAME: Final = r"(?:[\w.~+@$=,# *-]|\?|\[\w+\])+"
PLAIN: Final = re.compile(rf"/?(?:{_NAME}/)*{_NAME}/?", re.ASCII)
"""A line of a `.gitignore` file without `!`, backslashes, or character classes beyond letters and digits."""
_WILD: Final = re.compile(r"(\*+|\?|\[\w+\])")
_ENDING: Final = re.compile(r"\*[^*?\[/]+")


def _patterns(line: str) -> list[Any]:
    """Translate a line of a `.gitignore` file. A malformed line has no patterns, as in git."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  # not needed without such a file

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            return list(GitIgnoreSpec.from_lines([line]).patterns)
    except (ValueError, re.error, FutureWarning):
        return []


class Plain:
    """Consecutive lines of a `.gitignore` file that only ignore entries, so their order does not matter."""

    def __init__(self) -> None:
        """Start without lines."""
        self._kinds = _Entries(), _Entries()
        """The patterns for entries of any kind, and those for directories only."""

    @staticmethod
    def takes(line: str) -> bool:
        """Return whether a line is plain. A name with `**` is, but a path with `**` is not."""
        return PLAIN.fullmatch(line) is not None and ("**" not in line or "/" not in line.rstrip("/"))

    def add(self, line: str) -> None:
        """Add a plain line."""
        entries, body = self._kinds[line.endswith("/")], line.strip("/")
        if "/" in line.rstrip("/"):
            entries.add_path(body)
        elif _ENDING.fullmatch(body):
            entries.endings += (body[1:],)
        else:
            entries.add_name(body)

    def decides(self, path: str, *, folder: bool) -> bool | None:
        """Return True if an entry is ignored, or None if no line matches it."""
        name = path.rpartition("/")[2]
        return True if any(kind.have(name, path) for kind in self._kinds[: 1 + folder]) else None


class _Entries:
    """A set of entries, by name, end of name, or path."""

    def __init__(self) -> None:
        self.endings: tuple[str, ...] = ()
        self._names: set[str] = set()
        self._paths: set[str] = set()
        self._wild_names: list[str] = []
        self._wild_paths: list[str] = []

    def add_name(self, name: str) -> None:
        """Add a name."""
        if _WILD.search(name):
            self._wild_names.append(_translated(name))
        else:
            self._names.add(name)

    def add_path(self, path: str) -> None:
        """Add a path."""
        if _WILD.search(path):
            self._wild_paths.append(_translated(path))
        else:
            self._paths.add(path)

    def have(self, name: str, path: str) -> bool:
        """Return whether an entry is in the set."""
        if name in self._names or path in self._paths or name.endswith(self.endings):
            return True
        return bool(self._match_name(name) or (self._wild_paths and self._match_path(path)))

    @functools.cached_property
    def _match_name(self) -> Callable[[str], object]:
        return _any_of(self._wild_names)

    @functools.cached_property
    def _match_path(self) -> Callable[[str], object]:
        return _any_of(self._wild_paths)


def anywhere(line: str) -> str:
    """Remove `**/` from a plain name, which matches in any directory without it."""
    name = line.removeprefix("**/")
    return name if PLAIN.fullmatch(name) and "/" not in name.rstrip("/") and "**" not in name else line


def _translated(text: str) -> str:
    """Translate a plain line to a regular expression. A lone `*` matches at least one character."""
    parts = ("[^/]+" if set(part) == {"*"} else _part(part) for part in text.split("/"))
    return "/".join(parts)


def _part(text: str) -> str:
    """Translate the name of a file or directory to a regular expression."""
    pieces = _WILD.split(text)
    pieces[::2] = map(re.escape, pieces[::2])
    pieces[1::2] = ({"*": "[^/]*", "?": "[^/]"}.get(piece[0], piece) for piece in pieces[1::2])
    return "".join(pieces)


def _any_of(texts: Iterable[str]) -> Callable[[str], object]:
    """Combine regular expressions, each of which must match the whole text."""
    return re.compile("|".join(texts) or "(?!)").fullmatch


class _Pattern:
    """A line of a `.gitignore` file, as a regular expression.

    It is matched with the entry itself. A pattern that only matches a parent of the entry must not decide, or
    `*` with `!*/` would ignore everything.
    """

    def __init__(self, regex: re.Pattern[str], *, ignored: bool, folders_only: bool) -> None:
        self._search, self._ignored, self._folders_only = regex.search, ignored, folders_only

    def decides(self, path: str, *, folder: bool) -> bool | None:
        """Return whether an entry is ignored, or None if the line does not match it."""
        match = self._search(path) if folder or not self._folders_only else None
        return self._ignored if match is not None and match.lastindex is None else None


def text_of(folder: str) -> str:
    """Return the text of the `.gitignore` file of a directory, or "" if it cannot be read."""
    try:
        data = read(Path(folder, ".gitignore"))
    except OSError:
        return ""
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


class Ignore:
    """One `.gitignore` file: its lines, last first, and the directory to which they apply."""

    def __init__(self, folder: str, base: str) -> None:
        """Read the `.gitignore` file of a directory. An unreadable file has no lines.

        Args:
            folder: The directory.
            base: The relative path of the directory with a trailing slash. Empty for the root itself.
        """
        self.text = text_of(folder)
        self._base = len(base)
        self._lines: list[Plain | _Pattern] = []
        for line in reversed(self.text.split("\n")):
            self._add(line if line.endswith("\\ ") else line.rstrip())

    def _add(self, line: str) -> None:
        if not line or line.startswith("#"):
            return
        line = anywhere(line)
        if Plain.takes(line):
            if not self._lines or not isinstance(self._lines[-1], Plain):
                self._lines.append(Plain())
            last = self._lines[-1]
            if isinstance(last, Plain):
                last.add(line)
            return
        for pattern in _patterns(line.rstrip("/")):
            if pattern.include is not None:
                only = line.endswith("/")
                self._lines.append(_Pattern(pattern.regex, ignored=pattern.include, folders_only=only))

    def decides(self, path: str, *, folder: bool) -> bool | None:
        """Return whether an entry is ignored, or None if no line matches it."""
        path = path[self._base :]
        for line in self._lines:
            answer = line.decides(path, folder=folder)
            if answer is not None:
                return answer
        return None


def ignored(ignores: Sequence[Ignore], path: str, *, folder: bool) -> bool:
    """Return whether an entry is ignored. The nearest `.gitignore` file that matches decides.

    Args:
        ignores: The `.gitignore` files of the parent directories, topmost first.
        path: The relative path of the entry.
        folder: Whether the entry is a directory.
    """
    for ignore in reversed(ignores):
        answer = ignore.decides(path, folder=folder)
        if answer is not None:
            return answer
    return False
