"""The calls of `os` that list a directory."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any

from fsrace_lint.instrument.interception import Calls
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import Lookup, plain
from fsrace_lint.instrument.watched_tree import descriptor_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder
    from fsrace_lint.instrument.watched_tree import Path


class ListingCalls(Calls):
    """Calls that list a directory, each intercepted."""

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        return {posix.listdir: self.listdir, posix.scandir: self.scandir}

    def listdir(self, path: Path = ".") -> list[Any]:
        """Return the names in a directory."""
        names = self._names(path, "listdir")
        if names is None:
            return posix.listdir(path)
        return [os.fsencode(name) if isinstance(path, bytes) else name for name, _ in names]

    def scandir(self, path: Path = ".") -> Any:
        """Return the entries of a directory."""
        names = self._names(path, "scandir")
        if names is None:
            return posix.scandir(path)
        folder = "" if isinstance(path, int) else os.fsdecode(path or ".")
        descriptor = path if isinstance(path, int) else None
        encode = isinstance(path, bytes)
        return Entries(
            [DirectoryEntry(name, mode, folder, descriptor, encode=encode) for name, mode in names]
        )

    def _names(self, path: Path, name: str) -> list[tuple[str, int]] | None:
        path = "." if path is None else path
        descriptor = path if isinstance(path, int) else None
        if descriptor is None:
            place = self._place(path)
        else:
            place = descriptor_path(descriptor) if self._is_watched(descriptor) else None
        if place is None:
            return None

        def act(recorder: Recorder, answer: Answer | None) -> list[tuple[str, int]]:
            if descriptor is not None:
                recorder.reads("listing", posix.fstat(descriptor).st_ino)
            else:
                at = recorder.resolve(path)
                if at.is_folder:
                    recorder.reads("listing", at.inode)
            if answer is None:
                names = _listing(os.fsdecode(path) if not isinstance(path, int) else path)
                if self._interceptor.sorts_names:
                    names.sort()
            elif answer.there:
                names = list(answer.names)
            else:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(place))
            recorder.result = ", ".join(each for each, _ in names) or "nothing"
            return names

        lookup = None if descriptor is not None else Lookup("listdir", plain(place))
        return self._intercept(name, self._tree.shown(place), act, mutates=False, lookup=lookup)


class DirectoryEntry:
    """An entry of `os.scandir()`: its type is included, and everything else needs a separate call.

    As in CPython, the answer of each call is kept.

    Args:
        name: The name.
        mode: The file type when the directory was read.
        folder: The directory as the caller wrote it.
        descriptor: The directory, if the caller passed a descriptor.
        encode: Whether names are bytes.
    """

    def __init__(self, name: str, mode: int, folder: str, descriptor: int | None, *, encode: bool) -> None:
        path = os.path.join(folder, name)
        self._mode = mode
        self.name: Any = os.fsencode(name) if encode else name
        self.path: Any = os.fsencode(path) if encode else path
        self._descriptor = descriptor
        self._known: dict[bool, os.stat_result] = {}

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def inode(self) -> int:
        """Return the inode of the entry."""
        return self.stat(follow_symlinks=False).st_ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is a directory."""
        return self._is(stat.S_ISDIR, follow=follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is a regular file."""
        return self._is(stat.S_ISREG, follow=follow_symlinks)

    def is_symlink(self) -> bool:
        """Return whether the entry is a symbolic link."""
        return self._is(stat.S_ISLNK, follow=False)

    def is_junction(self) -> bool:
        """Return False, because only Windows has junctions."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the status of the entry."""
        follow = follow_symlinks and stat.S_ISLNK(self._mode)
        if follow not in self._known:
            self._known[follow] = os.stat(self.path, dir_fd=self._descriptor, follow_symlinks=follow)
        return self._known[follow]

    def _is(self, test: Callable[[int], bool], *, follow: bool) -> bool:
        if not follow or not stat.S_ISLNK(self._mode):
            return test(self._mode)
        try:
            return test(self.stat(follow_symlinks=follow).st_mode)
        except FileNotFoundError:
            return False


class Entries:
    """The result of `os.scandir()`."""

    def __init__(self, entries: list[DirectoryEntry]) -> None:
        self._entries = iter(entries)

    def __enter__(self) -> Entries:  # noqa: PYI034  # Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[DirectoryEntry]:
        return self._entries

    def __next__(self) -> DirectoryEntry:
        return next(self._entries)

    def close(self) -> None:
        """End the iteration."""
        self._entries = iter([])


def _listing(path: Any) -> list[tuple[str, int]]:
    with posix.scandir(path) as entries:
        return [(entry.name, _type(entry)) for entry in entries]


def _type(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return stat.S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return stat.S_IFDIR
    return stat.S_IFREG if entry.is_file(follow_symlinks=False) else stat.S_IFCHR
