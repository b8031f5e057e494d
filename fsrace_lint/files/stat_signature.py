"""Detect changes of files and directories by their status, without reading them."""

from __future__ import annotations

import os
from typing import Final

import msgspec

_CLOCK: Final = 2_000_000_000
"""The coarsest resolution of filesystem timestamps, in nanoseconds."""


class Status(msgspec.Struct, frozen=True, array_like=True):
    """The status of a file or directory."""

    size: int
    modified: int
    changed: int
    inode: int

    @staticmethod
    def of(status: os.stat_result) -> Status:
        """Create a status from the result of `os.stat()`."""
        return Status(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def settled(self, since: int) -> bool:
        """Return whether a change after a time, in nanoseconds, would change this status."""
        return max(self.modified, self.changed if os.name == "posix" else 0) < since - _CLOCK
