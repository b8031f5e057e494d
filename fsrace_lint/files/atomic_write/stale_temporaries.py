"""Temporary files beside those that are written: what they are called, and which of them are left over."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import Final

_PREFIX: Final = ".fsrace-lint."
NAME: Final = re.compile(r"\.fsrace-lint\.([0-9a-f]{8})\.([1-9][0-9]{0,9})\.[0-9a-f]{16}\.tmp")
_STALE: Final = 3600.0
"""The seconds after which nobody writes a temporary file any more, wherever he runs."""


def name() -> str:
    """Give a name for a temporary file that nobody else has; it says which process made it, and where."""
    return f"{_PREFIX}{here()}.{os.getpid()}.{os.urandom(8).hex()}.tmp"


def is_one(name: str) -> bool:
    """Tell whether a file has such a name, left over or not."""
    return name.startswith(_PREFIX) and NAME.fullmatch(name) is not None


@functools.cache
def here() -> str:
    """Name the place in which a process id means one process: a host, and what numbers its processes."""
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        numbers = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        numbers = ""
    return hashlib.blake2b(f"{host}\0{numbers}".encode("utf-8", "replace"), digest_size=4).hexdigest()


def sweep(folder: str | Path) -> None:
    """Delete what processes of this user have left in a folder when they were killed.

    Args:
        folder: The folder; one that cannot be listed is left as it is.
    """
    with contextlib.suppress(OSError), os.scandir(os.fspath(folder)) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _is_left(entry):
                with contextlib.suppress(OSError):
                    Path(entry.path).unlink()


def _is_left(entry: os.DirEntry[str]) -> bool:
    found = NAME.fullmatch(entry.name)
    if found is None:
        return False
    status = entry.stat(follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
        return False
    # the old file gets such a name for an instant: then its last change is old, but not that of its name
    is_old = time.time() - max(status.st_mtime, status.st_ctime) > _STALE
    return is_old or (found[1] == here() and not _is_alive(int(found[2])))


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":  # there a signal of 0 would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
