"""What a run may take of the machine: processors, and memory in which nothing is looked for."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux tells a container how much it may use: microseconds, and of how many."""

FROZEN_AT_STARTUP: Final = 1_000
"""An interpreter that has just started has frozen fewer objects: 3.12 375, the others none."""


def cpus() -> int:
    """Give the number of processors that this process may use."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # there is no such call on macOS and Windows
        allowed = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = map(int, QUOTA.read_text("ascii").split())  # the word `max` is no number
        allowed = min(allowed, -(-quota // period))
    return max(allowed, 1)


@contextlib.contextmanager
def gc_disabled() -> Iterator[None]:
    """Look for no cycles meanwhile: a run makes millions of objects that live as long as it does.

    Nor are they looked through at the end of the process, where memory goes back all at once.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if was_enabled:
            # what is left is old at once, and nobody looks through it for being new
            if gc.get_freeze_count() < FROZEN_AT_STARTUP:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
