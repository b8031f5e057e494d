"""What a process of a traced run leaves for the report: its output, and its stack if it hangs."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys


def keep(rank: int, top: str) -> None:
    """Write the output of this process to a file outside of the watched tree, and its stack on a signal.

    Args:
        rank: The rank of this process.
        top: The watched directory.
    """
    folder = os.path.dirname(top)
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    output, stack = (os.open(f"{folder}/{kind}.{rank}", flags, 0o600) for kind in ("output", "stack"))
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    faulthandler.register(signal.SIGUSR1, stack)
