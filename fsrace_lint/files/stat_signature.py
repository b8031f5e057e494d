"""What tells whether a file or a folder was changed, without a look into it."""

from __future__ import annotations

import os
from typing import Final

import msgspec

_CLOCK: Final = 2_000_000_000
"""The nanoseconds that the clock of a filesystem may stand still."""


class Status(msgspec.Struct, frozen=True, array_like=True):
    """What the system says of a file or a folder."""

    size: int
    modified: int
    changed: int
    inode: int

    @staticmethod
    def of(status: os.stat_result) -> Status:
        """Take it out of the answer of the system."""
        return Status(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def settled(self, since: int) -> bool:
        """Tell whether a change after a time, in nanoseconds, would show in this."""
        return max(self.modified, self.changed if os.name == "posix" else 0) < since - _CLOCK
