"""Read small files that somebody else may have made: a pipe would never end, a device never be full."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

LARGEST: Final = 16 * 1024 * 1024
"""The bytes that such a file may have."""

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read(file: Path) -> bytes:
    """Read a file.

    Args:
        file: The file; links are followed.

    Returns:
        All that it holds.

    Raises:
        OSError: It cannot be read, is no regular file or too large; `strerror` says which.
    """
    with os.fdopen(os.open(file, _FLAGS), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        if status.st_size > LARGEST:
            raise OSError(errno.EFBIG, f"is too large ({status.st_size} bytes)")
        return stream.read(LARGEST)
