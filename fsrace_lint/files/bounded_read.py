"""Read small files that others may have created, safely even if they are pipes or devices."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

LARGEST: Final = 16 * 1024 * 1024
"""The maximum size in bytes."""


def read(file: Path) -> bytes:
    """Read a file.

    Args:
        file: The file. Symbolic links are followed.

    Returns:
        The content.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is too large. `strerror` gives the reason.
    """
    # not os.fdopen(): for a directory it fails, and leaves the file descriptor open
    with open(file, "rb", opener=_opened) as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > LARGEST:
            raise OSError(
                errno.EFBIG, f"file is {status.st_size / 1e6:.1f} MB; the limit is {LARGEST / 1e6:.1f} MB"
            )
        return stream.read(LARGEST)


def _opened(file: str, flags: int) -> int:
    """Open a file without waiting for a process at the other end of a pipe."""
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))
