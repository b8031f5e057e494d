"""Read files, and turn the parser's byte columns into character columns."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path
from tokenize import detect_encoding
from typing import Final, Protocol, TypeAlias

import msgspec

from fsrace_lint.files.spans import Span

_BOM: Final = b"\xef\xbb\xbf"
PathNames: TypeAlias = tuple[str, Path, str]
LARGEST: Final = 5_000_000
"""The most bytes of a file: the parser takes up to 500 times as much memory, and nobody writes so much."""
_LINE_END: Final = re.compile(r"\r\n?|\n")


class Source(msgspec.Struct, frozen=True):
    """One file as read.

    `path` is as the user would write it (relative to the current folder if the
    file lies below it), `file` is absolute with symbolic links left alone,
    `relative` counts from the project root. `newline` is the most frequent one.
    """

    path: str
    file: Path
    relative: str
    data: bytes
    encoding: str
    bom: bool
    newline: str
    digest: str

    @property
    def text(self) -> str:
        """The text, without a BOM and with the newlines of the file; decoded anew each time, and not held."""
        body = self.data.removeprefix(_BOM) if self.bom else self.data
        # of other encodings some know no such answer to errors, and there are none
        return body.decode(self.encoding, "surrogatepass" if self.encoding == "utf-8" else "strict")


class Unreadable(msgspec.Struct, frozen=True):
    """A file or folder that could not be read, and why."""

    path: str
    file: Path
    relative: str
    reason: str
    line: int = 1
    column: int = 1


def split_lines(text: str) -> list[str]:
    """Split a text where any of the three newlines ends a line."""
    return _LINE_END.split(text) if "\r" in text else text.split("\n")


def path_below(file: str, folder: str) -> str | None:
    """Give the path of a file from a folder above it, with forward slashes; None if it is not below."""
    prefix = folder if folder.endswith(os.sep) else folder + os.sep
    return file[len(prefix) :].replace(os.sep, "/") if file.startswith(prefix) else None


def absolute_path(path: Path) -> str:
    """Make a path absolute without following links, unless `..` stands behind one."""
    plain = os.path.abspath(path)
    if ".." not in path.parts:
        return plain
    real = os.path.realpath(path)
    return plain if os.path.realpath(plain) == real else real


def relative_path(file: str, root: str) -> str:
    """Give the path of a file from the root, which need not be above it."""
    below = path_below(file, root)
    if below is not None:
        return below
    try:
        return Path(os.path.relpath(file, root)).as_posix()
    except ValueError:
        return Path(file).as_posix()


def names_of(file: Path, root: Path) -> PathNames:
    """Give the first three fields of a Source or an Unreadable."""
    absolute = absolute_path(file)
    try:
        here = path_below(absolute, os.getcwd())
    except OSError:
        here = None
    return here or Path(absolute).as_posix(), Path(absolute), relative_path(absolute, absolute_path(root))


def read(file: Path, root: Path) -> Source | Unreadable:
    """Read a file; whatever goes wrong is an answer, not an exception.

    Args:
        file: The file, absolute or relative to the current folder.
        root: The project root.

    Returns:
        The source, or why there is none.
    """
    data = read_bytes(names_of(file, root))
    return data if isinstance(data, Unreadable) else decode(data, file, root)


def read_bytes(names: PathNames) -> bytes | Unreadable:
    """Read the bytes of a file.

    Args:
        names: What it is called, as `names_of` tells.

    Returns:
        The bytes, or why there are none.
    """
    try:
        status = os.stat(names[1])
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, a socket or a device"
            return Unreadable(*names, f"is {kind}, not a regular file")
        if status.st_size > LARGEST:
            return Unreadable(*names, _too_large(status.st_size))
        return names[1].read_bytes()
    except FileNotFoundError:
        return Unreadable(*names, "the file does not exist")
    except (OSError, ValueError) as error:
        return Unreadable(*names, f"cannot be read: {getattr(error, 'strerror', None) or error}")


def _too_large(size: int) -> str:
    return (
        f"is not analyzed: {size / 1e6:.1f} MB are more than the {LARGEST / 1e6:.0f} MB that a file may have"
    )


def digest_of(data: bytes) -> str:
    """Give the digest of a file with these bytes."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def decode(data: bytes, file: Path, root: Path) -> Source | Unreadable:
    """Make a source of bytes that an editor or another tool hands over.

    Args:
        data: The bytes of the file.
        file: What the file is called; it need not exist.
        root: The project root.

    Returns:
        The source, or why the bytes are not one.
    """
    names = names_of(file, root)
    if len(data) > LARGEST:
        return Unreadable(*names, _too_large(len(data)))
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
        return Unreadable(*names, f"cannot be decoded: {' '.join(str(error).split())}")
    if "\0" in text:
        return Unreadable(*names, "contains a NUL character", *_position(text[: text.index("\0")]))
    return Source(
        *names,
        data=data,
        encoding=encoding,
        bom=len(body) < len(data),
        newline=_newline(text),
        digest=digest_of(data),
    )


def of_text(text: str, file: Path, root: Path) -> Source:
    """Make a source of text that another tool has decoded already.

    Args:
        text: The text, without a BOM.
        file: What the file is called; it need not exist.
        root: The project root.

    Returns:
        The source; a comment that names an encoding no longer counts.
    """
    data = text.encode("utf-8", "surrogatepass")
    return Source(
        *names_of(file, root),
        data=data,
        encoding="utf-8",
        bom=False,
        newline=_newline(text),
        digest=digest_of(data),
    )


def of_buffer(text: str, file: Path, root: Path) -> Source | Unreadable:
    """Make a source of text that an editor holds, with the bytes that it has once it is saved.

    Args:
        text: The text, without a BOM.
        file: What the file is called; it need not exist.
        root: The project root.

    Returns:
        The source, or why the text is not one.
    """
    data = text.encode("utf-8", "surrogatepass")
    with contextlib.suppress(LookupError, SyntaxError, ValueError):
        data = text.encode(_encoding(data))
    return decode(data, file, root)


def _encoding(data: bytes) -> str:
    """Find the encoding as PEP 263 says, with all three newlines ending a line.

    Only ASCII without NUL goes in, because the comment that names the encoding may be
    written in it, and the decoder knows better where the first bad byte is.
    """
    lines = re.split(rb"\r\n?|\n", data.removeprefix(_BOM), maxsplit=2)[:2]
    plain = [re.sub(rb"[^\1-\x7f]", b"?", line) + b"\n" for line in lines]
    if data.startswith(_BOM):
        plain[0] = _BOM + plain[0]
    following = iter(plain)
    return detect_encoding(lambda: next(following, b""))[0].removesuffix("-sig")


def _position(before: str) -> tuple[int, int]:
    """Give the line and column that follow a text."""
    lines = split_lines(before)
    return len(lines), len(lines[-1]) + 1


def _newline(text: str) -> str:
    both = text.count("\r\n")
    counts = {"\n": text.count("\n") - both, "\r\n": both, "\r": text.count("\r") - both}
    return max(counts, key=counts.__getitem__)


class Positioned(Protocol):
    """A syntax node with a place: lines from 1, columns in UTF-8 bytes from 0."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Columns:
    """Turns the parser's byte columns into 1-based character columns of one text."""

    __slots__ = ("_number", "_wide")

    def __init__(self, text: str) -> None:
        """Remember the lines of the parsed text that hold more than ASCII."""
        lines = () if text.isascii() else split_lines(text)
        self._wide = {n: line.encode() for n, line in enumerate(lines, 1) if not line.isascii()}
        numbers: dict[int, int] = {}
        self._number = numbers.setdefault
        """Gives one object for equal numbers: a project has hundreds of thousands of spans."""

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
        line = self._number(line, line)
        end_line = line if end_line == line else self._number(end_line, end_line)
        if not self._wide:
            return Span(line, column + 1, end_line, end_column + 1)
        return Span(line, self.character(line, column), end_line, self.character(end_line, end_column))
