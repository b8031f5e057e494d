"""Two files that change places in one step, so that what was replaced is still there to be looked at."""

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
"""What the kernel takes for "from the current folder"."""
_EXCHANGE: Final = 2


def swap(one: Path, other: Path) -> bool:
    """Let two files change places, if system and filesystem can do that.

    Args:
        one: A file.
        other: Another one.

    Returns:
        Whether it was done; if not, nothing was.

    Raises:
        FileNotFoundError: One of them is not there.
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
    """Give what the C library has for it, which is not in every one; it answers with an error number."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes  # noqa: PLC0415  # not built everywhere

        function = ctypes.CDLL(None, use_errno=True).renameat2
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    except (ImportError, OSError, AttributeError):
        return None

    def rename(one: bytes, other: bytes) -> int:
        return 0 if function(_HERE, one, _HERE, other, _EXCHANGE) == 0 else ctypes.get_errno()

    return rename
