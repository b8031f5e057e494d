"""The directory of a cache: nothing outside it is read or written, regardless of links in it."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.files.atomic_write import stale_temporaries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NAME: Final = ".fsrace_cache"
LARGEST: Final = 512 * 1024 * 1024
"""The maximum size of a cache file in bytes."""

_TAG: Final = "CACHEDIR.TAG"
_SIGNATURE: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
_OURS: Final = b"\n# This folder is the cache of fsrace-lint; it can be deleted at any time.\n"
_TAG_LARGEST: Final = 4096
_IGNORE: Final = ".gitignore"
_FILE: Final = re.compile(r"(catalog|facts|launches|results)-[a-z0-9.-]+\.bin")
_READ: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class FolderError(OSError):
    """Raised if a directory cannot be used as a cache. The message gives the reason."""


class Info(NamedTuple):
    """The name, size, and modification time of a cache file."""

    name: str
    size: int
    written: float


class Folder:
    """A directory in which files are replaced atomically, by renaming. There is no lock."""

    def __init__(self, path: Path) -> None:
        """Initialize with the path of a directory, which need not exist."""
        self.path = path

    def open(self, name: str) -> int | None:
        """Open a file for reading.

        Symbolic links and files of other users are rejected.

        Args:
            name: The name of the file.

        Returns:
            A file descriptor, or None if there is no such file that belongs to this user.
        """
        try:
            if not stat.S_ISDIR(os.lstat(self.path).st_mode):
                return None
            descriptor = os.open(self.path / name, _READ)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST and _is_ours(status):
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        return None

    def read(self, name: str, most: int) -> bytes | None:
        """Read a file as `open` does; None if it is larger than `most` bytes."""
        descriptor = self.open(name)
        if descriptor is None:
            return None
        try:
            with os.fdopen(descriptor, "rb") as stream:
                return stream.read() if os.fstat(descriptor).st_size <= most else None
        except OSError:
            return None

    def write(self, name: str, pieces: Iterable[bytes | memoryview]) -> None:
        """Replace a file atomically: a reader sees the old content or the new content.

        The data is not flushed to disk; readers detect a torn file.

        Args:
            name: The name of the file.
            pieces: The new content.

        Raises:
            OSError: The file cannot be written. The old content remains.
        """
        self._prepare()
        temporary = self.path / stale_temporaries.name()
        descriptor = os.open(temporary, _WRITE, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.writelines(pieces)
            os.replace(temporary, self.path / name)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        stale_temporaries.sweep(self.path)

    def files(self) -> list[Info]:
        """Return the files of the cache, sorted by name."""
        return sorted(info for info in self._entries() if _FILE.fullmatch(info.name))

    def is_cache(self) -> bool:
        """Return whether the directory is a cache that fsrace-lint created, and may therefore be modified."""
        if os.path.islink(self.path):
            return False
        data = self.read(_TAG, _TAG_LARGEST)
        return data is not None and data.startswith(_SIGNATURE + _OURS)

    def clear(self) -> list[Info]:
        """Delete the files of the cache, and the directory if it contains nothing else.

        Returns:
            The files that existed.

        Raises:
            FolderError: The directory is not a cache of fsrace-lint.
            OSError: A file cannot be deleted.
        """
        if not self.is_cache():
            raise FolderError("the directory is not an fsrace-lint cache")
        gone = self.files()
        for info in self._entries():
            if _FILE.fullmatch(info.name) or stale_temporaries.is_one(info.name):
                (self.path / info.name).unlink(missing_ok=True)
        if {info.name for info in self._entries()} <= {_TAG, _IGNORE}:
            for name in (_IGNORE, _TAG):
                (self.path / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # another process writes to it
                self.path.rmdir()
        return gone

    def _prepare(self) -> None:
        """Create the directory, with tags that mark it as a cache for other programs.

        Raises:
            OSError: The path is in use for something else, or the directory cannot be created.
        """
        if self.is_cache():
            return
        self.path.mkdir(parents=True, exist_ok=True)
        if os.path.islink(self.path):
            raise FolderError("the path is a symbolic link")
        foreign = [name for name in os.listdir(self.path) if name not in (_TAG, _IGNORE)]
        if any(not (_FILE.fullmatch(name) or stale_temporaries.is_one(name)) for name in foreign):
            raise FolderError("the directory contains other files")
        for name, data in ((_IGNORE, b"*\n"), (_TAG, _SIGNATURE + _OURS)):
            self._put_first(name, data)
        if not self.is_cache():
            raise FolderError(f"{_TAG} was not written by fsrace-lint")

    def _put_first(self, name: str, data: bytes) -> None:
        """Create a file, unless it exists."""
        temporary = self.path / stale_temporaries.name()
        descriptor = os.open(temporary, _WRITE, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            if not os.path.lexists(self.path / name):
                os.replace(temporary, self.path / name)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _entries(self) -> Iterator[Info]:
        with contextlib.suppress(OSError), os.scandir(str(self.path)) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    yield Info(entry.name, status.st_size, status.st_mtime)


def _is_ours(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user; always true on systems without file owners."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
