"""Changes of a directory tree that no intercepted call explains: what C, C++, or Rust code did."""

from __future__ import annotations

import os
import struct
import sys
from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint.instrument.kernel import posix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ACCESS, _MODIFY, _ATTRIB, _OPEN = 0x1, 0x2, 0x4, 0x20
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _DIRECTORY = 0x4000, 0x40000000
_NEW: Final = _CREATE | _MOVED_TO
_WORDS: Final = (
    (_NEW, "creates"),
    (_DELETE | _MOVED_FROM, "deletes"),
    (_MODIFY | _ATTRIB, "changes"),
    (_ACCESS | _OPEN, "reads"),
    (_OVERFLOW, "changes"),
)
_MASK: Final = _ACCESS | _MODIFY | _ATTRIB | _OPEN | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_NONBLOCK_CLOEXEC: Final = os.O_NONBLOCK | os.O_CLOEXEC if os.name == "posix" else 0
_EVENT: Final = struct.Struct("iIII")
_MOST: Final = 1 << 16


class TreeWatch(Protocol):
    """Watches a directory tree for changes."""

    def cover(self, top: str) -> None:
        """Watch every directory of a tree, and forget what happened until now."""

    def settle(self, top: str) -> None:
        """Forget what happened until now, and watch directories that were created since."""

    def happened(self, top: str) -> list[tuple[str, str]]:
        """Return what happened since: the kinds of changes, and the paths."""

    def close(self) -> None:
        """Stop watching."""


def watching() -> TreeWatch:
    """Return the best way to watch a tree on this system."""
    made = Inotify.opened() if sys.platform == "linux" else None
    return Snapshots() if made is None else made


class Inotify:
    """Asks the kernel: inotify(7) reports each open, read, and change of a file in a watched directory.

    Processes that are forked later share the watch. Lookups such as `stat` are not reported.

    Args:
        descriptor: The descriptor of the watch.
        add: Calls `inotify_add_watch()`.
    """

    def __init__(self, descriptor: int, add: Callable[[int, bytes, int], int]) -> None:
        self._descriptor = descriptor
        self._add = add
        self._folders: dict[int, str] = {}

    @classmethod
    def opened(cls) -> Inotify | None:
        """Create a watch, or return None if the kernel has none left."""
        import ctypes  # noqa: PLC0415  # only for Linux

        try:
            library = ctypes.CDLL(None, use_errno=True)
            create, add = library.inotify_init1, library.inotify_add_watch
        except (OSError, AttributeError):
            return None
        descriptor = create(_NONBLOCK_CLOEXEC)
        return None if descriptor < 0 else cls(descriptor, add)

    def cover(self, top: str) -> None:
        """Watch every directory of a tree, and forget what happened until now."""
        for folder in _folders(top):
            self._folders[self._add(self._descriptor, os.fsencode(folder), _MASK)] = folder
        self._drain()

    def settle(self, top: str) -> None:
        """Forget what happened until now, and watch directories that were created since."""
        data = self._drain()
        if data and any(mask & _NEW and mask & _DIRECTORY for _, mask, _ in _events(data)):
            self.cover(top)

    def happened(self, top: str) -> list[tuple[str, str]]:
        """Return what happened since: the kinds of changes, and the paths."""
        data = self._drain()
        if not data:
            return []
        found: dict[str, int] = {}
        for watch, mask, name in _events(data):
            path = f"{self._folders.get(watch, top)}/{name}".rstrip("/")
            found[path] = found.get(path, 0) | mask
        if any(mask & _NEW and mask & _DIRECTORY for mask in found.values()):
            self.cover(top)
        return [(_word(mask), path) for path, mask in found.items()]

    def _drain(self) -> bytes:
        data = b""
        try:
            while True:
                more = posix.read(self._descriptor, _MOST)
                data += more
                if len(more) < _MOST // 2:
                    return data
        except BlockingIOError:
            return data

    def close(self) -> None:
        """Stop watching."""
        posix.close(self._descriptor)


class Snapshots:
    """Compares the names, sizes, and timestamps of all files, on systems without inotify."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[int, ...]] = {}

    def cover(self, top: str) -> None:
        """Take a snapshot of a tree."""
        self._before = _snapshot(top)

    settle = cover

    def happened(self, top: str) -> list[tuple[str, str]]:
        """Return what happened since: the kinds of changes, and the paths."""
        before, now = self._before, _snapshot(top)
        self._before = now
        return [
            ("deletes" if path not in now else "changes" if path in before else "creates", path)
            for path in sorted({*before, *now})
            if before.get(path) != now.get(path)
        ]

    def close(self) -> None:
        """Stop watching."""


def _folders(top: str) -> Iterable[str]:
    folders = [top]
    while folders:
        folder = folders.pop()
        yield folder
        try:
            with posix.scandir(folder) as entries:
                folders += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue


def _snapshot(top: str) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for folder in _folders(top):
        try:
            with posix.scandir(folder) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    times = (status.st_mtime_ns, status.st_ctime_ns)
                    is_directory = entry.is_dir(follow_symlinks=False)
                    facts = (
                        (status.st_ino, status.st_mode)
                        if is_directory
                        else (status.st_ino, status.st_mode, status.st_size, *times)
                    )
                    found[entry.path] = facts
        except OSError:
            continue
    return found


def _events(data: bytes) -> Iterable[tuple[int, int, str]]:
    at = 0
    while at + _EVENT.size <= len(data):
        watch, mask, _, size = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        yield watch, mask, os.fsdecode(data[at : at + size].rstrip(b"\0"))
        at += size


def _word(mask: int) -> str:
    return next((word for kinds, word in _WORDS if mask & kinds), "uses")
