"""Exchange two files atomically, so that the replaced file can still be inspected."""

from __future__ import annotations

import errno
import functools
import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_HERE: Final = -100
"""`AT_FDCWD`: relative to the current directory."""
_EXCHANGE: Final = 2


def swap(one: Path, other: Path) -> bool:
    """Exchange two files, if the system and the filesystem support it.

    Args:
        one: A file.
        other: Another file.

    Returns:
        Whether the files were exchanged. If not, nothing changed.

    Raises:
        FileNotFoundError: One of the files does not exist.
    """
    rename = _renameat2()
    if rename is None:
        return False
    error = rename(os.fsencode(one), os.fsencode(other))
    if error == errno.ENOENT:
        raise FileNotFoundError(error, os.strerror(error), os.fspath(one), None, os.fspath(other))
    return error == 0


@functools.cache
def _renameat2() -> Callable[[bytes, bytes], int] | None:
    """Return a wrapper of `renameat2` that returns an error number, or None if the C library lacks it."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes  # noqa: PLC0415  # missing in some builds of Python

        function = ctypes.CDLL(None, use_errno=True).renameat2
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    except (ImportError, OSError, AttributeError):
        return None

    def rename(one: bytes, other: bytes) -> int:
        return 0 if function(_HERE, one, _HERE, other, _EXCHANGE) == 0 else ctypes.get_errno()

    return rename
