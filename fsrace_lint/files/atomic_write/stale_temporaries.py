"""Names of temporary files, and the cleanup of those that killed processes left behind."""

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
"""The age in seconds after which no process, on any host, still writes a temporary file."""


def name() -> str:
    """Return a unique name for a temporary file, which encodes the process and its host."""
    return f"{_PREFIX}{here()}.{os.getpid()}.{os.urandom(8).hex()}.tmp"


def is_one(name: str) -> bool:
    """Return whether a file has the name of a temporary file, left over or not."""
    return name.startswith(_PREFIX) and NAME.fullmatch(name) is not None


@functools.cache
def here() -> str:
    """Return a name for the scope of process IDs: the host and its PID namespace."""
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        numbers = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        numbers = ""
    return hashlib.blake2b(f"{host}\0{numbers}".encode("utf-8", "replace"), digest_size=4).hexdigest()


def sweep(folder: str | Path) -> None:
    """Delete temporary files that killed processes of this user left in a directory.

    Args:
        folder: The directory. If it cannot be listed, nothing is deleted.
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
    # an exchange gives the old file such a name: its mtime is old, but its ctime is not
    is_old = time.time() - max(status.st_mtime, status.st_ctime) > _STALE
    return is_old or (found[1] == here() and not _is_alive(int(found[2])))


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":  # on Windows, signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
