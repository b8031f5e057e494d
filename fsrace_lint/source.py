"""Find files, read them, and turn the parser's byte columns into character columns."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import warnings
from pathlib import Path
from tokenize import detect_encoding
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec
from pathspec import GitIgnoreSpec

from fsrace_lint.settings import DEFAULT_EXCLUDES, TEST_PATTERNS, glob, matcher
from fsrace_lint.spans import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.settings import Settings

_SUFFIXES: Final = (".py", ".pyw")
_BOM: Final = b"\xef\xbb\xbf"
_Names: TypeAlias = tuple[str, Path, str]
_LINE_END: Final = re.compile(r"\r\n?|\n")


class Source(msgspec.Struct, frozen=True):
    """One file as read.

    `path` is as the user would write it (relative to the current folder if the
    file lies below it), `file` is absolute with symbolic links left alone,
    `relative` counts from the project root. `text` has no BOM, and its newlines
    are those of the file; `newline` is the most frequent one.
    """

    path: str
    file: Path
    relative: str
    data: bytes
    text: str
    encoding: str
    bom: bool
    newline: str
    digest: str


class Unreadable(msgspec.Struct, frozen=True):
    """A file or folder that could not be read, and why."""

    path: str
    file: Path
    relative: str
    reason: str
    line: int = 1
    column: int = 1


def _below(file: str, folder: str) -> str | None:
    """Give the path of a file from a folder above it, with forward slashes; None if it is not below."""
    prefix = folder if folder.endswith(os.sep) else folder + os.sep
    return file[len(prefix) :].replace(os.sep, "/") if file.startswith(prefix) else None


def _absolute(path: Path) -> str:
    """Make a path absolute without following links, unless `..` stands behind one."""
    plain = os.path.abspath(path)  # noqa: PTH100
    if ".." not in path.parts:
        return plain
    real = os.path.realpath(path)
    return plain if os.path.realpath(plain) == real else real


def _relative(file: str, root: str) -> str:
    """Give the path of a file from the root, which need not be above it."""
    below = _below(file, root)
    if below is not None:
        return below
    try:
        return Path(os.path.relpath(file, root)).as_posix()
    except ValueError:
        return Path(file).as_posix()


def _names(file: Path, root: Path) -> _Names:
    absolute = _absolute(file)
    try:
        here = _below(absolute, os.getcwd())  # noqa: PTH109
    except OSError:
        here = None
    return here or Path(absolute).as_posix(), Path(absolute), _relative(absolute, _absolute(root))


def read(file: Path, root: Path) -> Source | Unreadable:
    """Read a file; whatever goes wrong is an answer, not an exception.

    Args:
        file: The file, absolute or relative to the current folder.
        root: The project root.

    Returns:
        The source, or why there is none.
    """
    names = _names(file, root)
    try:
        mode = os.stat(names[1]).st_mode  # noqa: PTH116
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
            return Unreadable(*names, f"is {kind}, not a regular file")
        data = names[1].read_bytes()
    except FileNotFoundError:
        return Unreadable(*names, "the file does not exist")
    except (OSError, ValueError) as error:
        return Unreadable(*names, f"cannot be read: {getattr(error, 'strerror', None) or error}")
    return decode(data, names[1], root)


def decode(data: bytes, file: Path, root: Path) -> Source | Unreadable:
    """Make a source of bytes that an editor or another tool hands over.

    Args:
        data: The bytes of the file.
        file: What the file is called; it need not exist.
        root: The project root.

    Returns:
        The source, or why the bytes are not one.
    """
    names = _names(file, root)
    body = data.removeprefix(_BOM)
    encoding = "utf-8"
    try:
        encoding = _encoding(data)
        text = body.decode(encoding)
        text.encode()
    except UnicodeDecodeError as error:
        start = error.start
        reason = f"is not encoded as {encoding.upper()}: byte 0x{body[start : start + 1].hex()}"
        return Unreadable(*names, reason, *_position(body[:start].decode(encoding, "replace")))
    except (LookupError, SyntaxError, ValueError) as error:
        return Unreadable(*names, f"cannot be decoded: {error}")
    if "\0" in text:
        return Unreadable(*names, "contains a NUL character", *_position(text[: text.index("\0")]))
    return Source(
        *names,
        data=data,
        text=text,
        encoding=encoding,
        bom=len(body) < len(data),
        newline=_newline(text),
        digest=hashlib.blake2b(data, digest_size=20).hexdigest(),
    )


def _encoding(data: bytes) -> str:
    """Find the encoding as PEP 263 says, with all three newlines ending a line.

    Only ASCII goes in, because the comment that names the encoding may be
    written in it, and the decoder knows better where the first bad byte is.
    """
    lines = re.split(rb"\r\n?|\n", data.removeprefix(_BOM), maxsplit=2)[:2]
    plain = [re.sub(rb"[^\0-\x7f]", b"?", line) + b"\n" for line in lines]
    if data.startswith(_BOM):
        plain[0] = _BOM + plain[0]
    following = iter(plain)
    return detect_encoding(lambda: next(following, b""))[0].removesuffix("-sig")


def _position(before: str) -> tuple[int, int]:
    """Give the line and column that follow a text."""
    lines = _LINE_END.split(before)
    return len(lines), len(lines[-1]) + 1


def _newline(text: str) -> str:
    both = text.count("\r\n")
    counts = {"\n": text.count("\n") - both, "\r\n": both, "\r": text.count("\r") - both}
    return max(counts, key=counts.__getitem__)


def _patterns(line: str) -> list[Any]:
    """Translate a line of a `.gitignore` file; like git, leave out one that is not well formed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            return list(GitIgnoreSpec.from_lines([line]).patterns)
    except (ValueError, re.error, FutureWarning):
        return []


class _Ignore:
    """One `.gitignore` file: its lines, the last first, and the folder they count from.

    The lines are tried one by one, each on the entry itself: a pattern that only
    matches a parent of the entry must not decide, or `*` with `!*/` would
    ignore everything.
    """

    def __init__(self, folder: str, base: str) -> None:
        file = Path(folder, ".gitignore")
        try:
            text = file.read_text("utf-8-sig", "replace") if file.is_file() else ""
        except OSError:
            text = ""
        self._base = len(base)
        self._lines: list[tuple[Callable[[str], re.Match[str] | None], bool, bool]] = []
        for line in reversed(text.split("\n")):
            stripped = line if line.endswith("\\ ") else line.rstrip()
            for pattern in _patterns(stripped.rstrip("/")):
                if pattern.include is not None:
                    self._lines.append((pattern.regex.search, pattern.include, stripped.endswith("/")))

    def decides(self, path: str, *, folder: bool) -> bool | None:
        """Tell whether an entry is ignored; None if no line says anything about it."""
        path = path[self._base :]
        for search, ignored, folders_only in self._lines:
            if folders_only and not folder:
                continue
            match = search(path)
            if match is not None and match.lastindex is None:
                return ignored
        return None


def _ignored(ignores: Sequence[_Ignore], path: str, *, folder: bool) -> bool:
    answers = (ignore.decides(path, folder=folder) for ignore in reversed(ignores))
    return next((answer for answer in answers if answer is not None), False)


class _Walk:
    """What one call of `find` shares between the folders it walks."""

    def __init__(self, settings: Settings, *, include_tests: bool) -> None:
        self.root = _absolute(settings.root)
        self.settings = settings
        chosen = DEFAULT_EXCLUDES if settings.exclude is None else settings.exclude
        tests = () if include_tests else TEST_PATTERNS
        globs = [glob(text) for text in (*chosen, *settings.extend_exclude, *tests)]
        self.excludes_folder = matcher(globs)
        self.excludes_file = matcher([g for g in globs if not g.folders_only])

    def ignores_above(self, top: str) -> tuple[_Ignore, ...]:
        """Read the `.gitignore` files from the root to just above a folder.

        Where they ignore the folder itself, naming it has overruled them.
        """
        below = _below(top, self.root)
        if not below or not self.settings.respect_gitignore:
            return ()
        found, folder, base = list[_Ignore](), self.root, ""
        for name in Path(below).parts:
            found.append(_Ignore(folder, base))
            if _ignored(found, base + name, folder=True):
                return ()
            folder, base = os.path.join(folder, name), f"{base}{name}/"  # noqa: PTH118
        return tuple(found)

    def walk(self, top: str) -> Iterator[str | Unreadable]:
        """Yield the files below a folder, which is not itself subject to the patterns."""
        below = _below(top, self.root)
        prefix = f"{below}/" if below else ""
        pending = [(top, prefix, self.ignores_above(top))]
        while pending:
            folder, prefix, ignores = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    found = {entry.name: entry for entry in entries}
            except OSError as error:
                reason = f"cannot be listed: {error.strerror or error}"
                yield Unreadable(*_names(Path(folder), Path(self.root)), reason)
                continue
            if self.settings.exclude is None and folder != top and "pyvenv.cfg" in found:
                continue
            if self.settings.respect_gitignore and ".gitignore" in found:
                ignores = (*ignores, _Ignore(folder, prefix))
            for name, entry in found.items():
                path = prefix + name
                if entry.is_dir(follow_symlinks=False):
                    if not self.excludes_folder(name, path) and not _ignored(ignores, path, folder=True):
                        pending.append((entry.path, f"{path}/", ignores))
                elif (
                    name.endswith(_SUFFIXES)
                    and not self.excludes_file(name, path)
                    and not _ignored(ignores, path, folder=False)
                    and os.path.isfile(entry.path)  # noqa: PTH113
                ):
                    yield entry.path


def is_test_path(relative: str) -> bool:
    """Tell whether a file is a test or belongs to the documentation.

    Args:
        relative: The file's path from the project root, with forward slashes.

    Returns:
        True if its name or one of its folders says so.
    """
    return any(glob(text).covers(relative) for text in TEST_PATTERNS)


def find(paths: Sequence[Path], settings: Settings) -> Iterator[Path | Unreadable]:
    """Find the files to check.

    What is named is always checked, whatever the patterns say of it; naming a
    folder of tests asks for the tests in it.

    Args:
        paths: Files and folders as named on the command line.
        settings: The settings, whose patterns count below the folders named.

    Yields:
        Absolute paths in sorted order and without repeats, and the folders that
        cannot be listed.
    """
    found: dict[str, Path | Unreadable] = {}
    for path in paths:
        top = _absolute(path)
        if not os.path.isdir(top):  # noqa: PTH112
            found[top] = Path(top)
            continue
        tests = settings.include_tests or is_test_path(f"{_relative(top, _absolute(settings.root))}/-")
        for item in _Walk(settings, include_tests=tests).walk(top):
            if isinstance(item, Unreadable):
                found[str(item.file)] = item
            else:
                found[item] = Path(item)
    yield from (found[name] for name in sorted(found))


def find_all(settings: Settings) -> list[Path]:
    """Find the files of the whole project, over which linking happens.

    Args:
        settings: The settings.

    Returns:
        Absolute paths in sorted order.
    """
    return [item for item in find([settings.root], settings) if isinstance(item, Path)]


class Positioned(Protocol):
    """A syntax node with a place: lines from 1, columns in UTF-8 bytes from 0."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Columns:
    """Turns the parser's byte columns into 1-based character columns of one text."""

    __slots__ = ("_wide",)

    def __init__(self, text: str) -> None:
        """Remember the lines of the parsed text that hold more than ASCII."""
        lines = () if text.isascii() else _LINE_END.split(text)
        self._wide = {n: line.encode() for n, line in enumerate(lines, 1) if not line.isascii()}

    def character(self, line: int, byte_offset: int) -> int:
        """Give a character column.

        Args:
            line: The line, from 1.
            byte_offset: The offset in the UTF-8 line, from 0.

        Returns:
            The column in characters, from 1.
        """
        data = self._wide.get(line)
        if data is None:
            return byte_offset + 1
        return len(data[:byte_offset].decode("utf-8", "ignore")) + 1

    def span(self, node: Positioned) -> Span:
        """Give the span of a syntax node.

        Args:
            node: Any object with the place attributes of `ast` nodes.

        Returns:
            Its span; one without an end is empty.
        """
        line, column, end_line, end_column = (
            node.lineno,
            node.col_offset,
            node.end_lineno,
            node.end_col_offset,
        )
        if end_line is None or end_column is None:
            end_line, end_column = line, column
        if not self._wide:
            return Span(line, column + 1, end_line, end_column + 1)
        return Span(line, self.character(line, column), end_line, self.character(end_line, end_column))
