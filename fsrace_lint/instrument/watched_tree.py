"""The folder in which a process's calls are watched."""

from __future__ import annotations

import os
import posix
import stat
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    Path = str | bytes | int | os.PathLike[str] | os.PathLike[bytes] | None


class ResolvedPath(NamedTuple):
    """Where a path leads.

    Attributes:
        path: The path with no link left in it, but for the last name where it is not followed.
        entry: The directory's inode and the name in it.
        inode: The inode there, or 0.
        mode: Its mode, or 0.
    """

    path: str
    entry: tuple[int, str]
    inode: int
    mode: int

    @property
    def is_folder(self) -> bool:
        """Whether a directory is there."""
        return stat.S_ISDIR(self.mode)


class WatchedTree:
    """The folder in which calls are watched.

    Args:
        top: Its path, without links.
        base: The folder in it to which paths are relative that people read.
    """

    def __init__(self, top: str, base: str) -> None:
        self.top, self._below = top, top + "/"
        self._base = base

    def place(self, path: Path, dir_fd: int | None = None) -> str | None:
        """Give the absolute path of what a call is given, as it is at this moment.

        Args:
            path: As the call was given it.
            dir_fd: What it is relative to, where not to the working directory.

        Returns:
            A path in the tree that may hold links and dots, or None.
        """
        if path is None or isinstance(path, int):
            return None
        text = os.fsdecode(path)
        if "\0" in text:
            return None
        if not text.startswith("/"):
            try:
                base = posix.getcwd() if dir_fd is None else descriptor_path(dir_fd)
            except OSError:
                return None
            text = f"{base}/{text}" if text else ""
        if ".." in text and not text.startswith(self._below):
            text = os.path.normpath(text)
        if text.startswith(self._below) or text == self.top:
            return text
        return None

    def shown(self, path: str) -> str:
        """Give a path as people read it."""
        if path == self._base:
            return "."
        below = self._base + "/"
        return path.removeprefix(below if path.startswith(below) else self._below)


def descriptor_path(descriptor: int) -> str:
    """Give the path of an open directory as it is now.

    Args:
        descriptor: What it is open as.

    Returns:
        The path.

    Raises:
        OSError: It has none.
    """
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  # elsewhere /proc tells it

        return fcntl.fcntl(descriptor, 50, bytes(1024)).rstrip(b"\0").decode()
    return posix.readlink(f"/proc/self/fd/{descriptor}")
