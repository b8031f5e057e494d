"""Read source files, and convert byte columns of the parser to character columns."""

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
"""The maximum size of a file in bytes. The parser needs up to 500 times as much memory."""
_LINE_END: Final = re.compile(r"\r\n?|\n")


class Source(msgspec.Struct, frozen=True):
    """A source file as read.

    Attributes:
        path: The path as the user would write it: relative to the current directory if the file is below it.
        file: The absolute path. Symbolic links are not resolved.
        relative: The path relative to the project root.
        data: The bytes.
        encoding: The encoding.
        bom: Whether the file begins with a byte order mark (BOM).
        newline: The most frequent line ending.
        digest: The digest of the bytes.
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
        """The text without a BOM, with the original line endings, decoded on each access."""
        body = self.data.removeprefix(_BOM) if self.bom else self.data
        # some other encodings do not support this error handler, and do not need it
        return body.decode(self.encoding, "surrogatepass" if self.encoding == "utf-8" else "strict")


class Unreadable(msgspec.Struct, frozen=True):
    """A file or directory that cannot be read, and the reason."""

    path: str
    file: Path
    relative: str
    reason: str
    line: int = 1
    column: int = 1


def split_lines(text: str) -> list[str]:
    """Split a text into lines at any of the three line endings."""
    return _LINE_END.split(text) if "\r" in text else text.split("\n")


def path_below(file: str, folder: str) -> str | None:
    """Return the path of a file relative to a directory, with forward slashes, or None if not below it."""
    prefix = folder if folder.endswith(os.sep) else folder + os.sep
    return file[len(prefix) :].replace(os.sep, "/") if file.startswith(prefix) else None


def absolute_path(path: Path) -> str:
    """Return an absolute path without resolving links, unless a `..` follows a link."""
    plain = os.path.abspath(path)
    if ".." not in path.parts:
        return plain
    real = os.path.realpath(path)
    return plain if os.path.realpath(plain) == real else real


def relative_path(file: str, root: str) -> str:
    """Return the path of a file relative to a root, which need not be a parent."""
    below = path_below(file, root)
    if below is not None:
        return below
    try:
        return Path(os.path.relpath(file, root)).as_posix()
    except ValueError:
        return Path(file).as_posix()


def names_of(file: Path, root: Path) -> PathNames:
    """Return the first three fields of a `Source` or an `Unreadable`."""
    absolute = absolute_path(file)
    try:
        here = path_below(absolute, os.getcwd())
    except OSError:
        here = None
    return here or Path(absolute).as_posix(), Path(absolute), relative_path(absolute, absolute_path(root))


def read(file: Path, root: Path) -> Source | Unreadable:
    """Read a file. Failures are returned, not raised.

    Args:
        file: The file, absolute or relative to the current directory.
        root: The project root.

    Returns:
        The source, or the reason why there is none.
    """
    data = read_bytes(names_of(file, root))
    return data if isinstance(data, Unreadable) else decode(data, file, root)


def read_bytes(names: PathNames) -> bytes | Unreadable:
    """Read the bytes of a file.

    Args:
        names: The names of the file, as returned by `names_of`.

    Returns:
        The bytes, or the reason why there are none.
    """
    try:
        status = os.stat(names[1])
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a pipe, socket, or device"
            return Unreadable(*names, f"path is {kind}, not a regular file")
        if status.st_size > LARGEST:
            return Unreadable(*names, _too_large(status.st_size))
        return names[1].read_bytes()
    except FileNotFoundError:
        return Unreadable(*names, "file does not exist")
    except (OSError, ValueError) as error:
        return Unreadable(*names, f"cannot read the file: {getattr(error, 'strerror', None) or error}")


def _too_large(size: int) -> str:
    return f"file is {size / 1e6:.1f} MB; the limit is {LARGEST / 1e6:.0f} MB"


def digest_of(data: bytes) -> str:
    """Return the digest of the bytes of a file."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def decode(data: bytes, file: Path, root: Path) -> Source | Unreadable:
    """Create a source from bytes that an editor or another tool provides.

    Args:
        data: The bytes of the file.
        file: The path of the file, which need not exist.
        root: The project root.

    Returns:
        The source, or the reason why the bytes are not valid source.
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
        reason = f"file is not encoded as {encoding.upper()}: byte 0x{body[start : start + 1].hex()}"
        return Unreadable(*names, reason, *_position(body[:start].decode(encoding, "replace")))
    except (LookupError, SyntaxError, ValueError) as error:
        return Unreadable(*names, f"cannot decode the file: {' '.join(str(error).split())}")
    if "\0" in text:
        return Unreadable(*names, "file contains a NUL character", *_position(text[: text.index("\0")]))
    return Source(
        *names,
        data=data,
        encoding=encoding,
        bom=len(body) < len(data),
        newline=_newline(text),
        digest=digest_of(data),
    )


def of_text(text: str, file: Path, root: Path) -> Source:
    """Create a source from text that another tool has decoded.

    Args:
        text: The text, without a BOM.
        file: The path of the file, which need not exist.
        root: The project root.

    Returns:
        The source, encoded as UTF-8 whatever an encoding comment says.
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
    """Create a source from the text of an editor buffer, with the bytes it would have when saved.

    Args:
        text: The text, without a BOM.
        file: The path of the file, which need not exist.
        root: The project root.

    Returns:
        The source, or the reason why the text is not valid source.
    """
    data = text.encode("utf-8", "surrogatepass")
    with contextlib.suppress(LookupError, SyntaxError, ValueError):
        data = text.encode(_encoding(data))
    return decode(data, file, root)


def _encoding(data: bytes) -> str:
    """Return the encoding according to PEP 263, where any of the three line endings ends a line.

    Other characters than ASCII, and NUL, are replaced before the search. The decoder reports the first
    invalid byte better.
    """
    lines = re.split(rb"\r\n?|\n", data.removeprefix(_BOM), maxsplit=2)[:2]
    plain = [re.sub(rb"[^\1-\x7f]", b"?", line) + b"\n" for line in lines]
    if data.startswith(_BOM):
        plain[0] = _BOM + plain[0]
    following = iter(plain)
    return detect_encoding(lambda: next(following, b""))[0].removesuffix("-sig")


def _position(before: str) -> tuple[int, int]:
    """Return the line and column after a text."""
    lines = split_lines(before)
    return len(lines), len(lines[-1]) + 1


def _newline(text: str) -> str:
    both = text.count("\r\n")
    counts = {"\n": text.count("\n") - both, "\r\n": both, "\r": text.count("\r") - both}
    return max(counts, key=counts.__getitem__)


class Positioned(Protocol):
    """A syntax node with a position: lines from 1, columns in UTF-8 bytes from 0."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Columns:
    """Converts byte columns of the parser to 1-based character columns for one text."""

    __slots__ = ("_number", "_wide")

    def __init__(self, text: str) -> None:
        """Store the lines of the text that contain non-ASCII characters."""
        lines = () if text.isascii() else split_lines(text)
        self._wide = {n: line.encode() for n, line in enumerate(lines, 1) if not line.isascii()}
        numbers: dict[int, int] = {}
        self._number = numbers.setdefault
        """Returns a shared object for equal numbers, because a project has very many spans."""

    def character(self, line: int, byte_offset: int) -> int:
        """Return a character column.

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
        """Return the span of a syntax node.

        Args:
            node: An object with the position attributes of `ast` nodes. Without an end, its span is empty.
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
