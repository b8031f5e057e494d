"""The directory in which the calls of a process are watched."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.instrument.kernel import posix

if TYPE_CHECKING:
    Path = str | bytes | int | os.PathLike[str] | os.PathLike[bytes] | None


class ResolvedPath(NamedTuple):
    """The result of a path resolution.

    Attributes:
        path: The path without links, except for the last name if it is not followed.
        entry: The inode of the directory, and the name in it.
        inode: The inode of the path, or 0.
        mode: Its mode, or 0.
    """

    path: str
    entry: tuple[int, str]
    inode: int
    mode: int

    @property
    def is_folder(self) -> bool:
        """Whether the path is a directory."""
        return stat.S_ISDIR(self.mode)


class WatchedTree:
    """The directory in which calls are watched.

    Args:
        top: Its path, without links.
        base: The directory in it that display paths are relative to.
    """

    def __init__(self, top: str, base: str) -> None:
        self.top, self._below = top, top + "/"
        self._base = base

    def place(self, path: Path, dir_fd: int | None = None) -> str | None:
        """Return the absolute path of the argument of a call at this moment.

        Args:
            path: The path as the caller wrote it.
            dir_fd: The descriptor of the directory that it is relative to, if not the working directory.

        Returns:
            A path in the tree, which can contain links and dots; None if it is outside.
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
        """Return the display form of a path."""
        if path == self._base:
            return "."
        below = self._base + "/"
        return path.removeprefix(below if path.startswith(below) else self._below)


def descriptor_path(descriptor: int) -> str:
    """Return the current path of an open file or directory.

    Args:
        descriptor: The descriptor.

    Returns:
        The path.

    Raises:
        OSError: It has no path.
    """
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  # other systems have /proc

        return fcntl.fcntl(descriptor, 50, bytes(1024)).rstrip(b"\0").decode()
    return posix.readlink(f"/proc/self/fd/{descriptor}")
