"""The resources that a run uses: the number of CPUs, and garbage collection."""

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
"""The CPU quota of a container on Linux: microseconds of CPU time, and the period in microseconds."""

FROZEN_AT_STARTUP: Final = 1_000
"""An upper bound on the objects that a new interpreter has frozen: 375 in 3.12, else none."""


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not available on macOS and Windows
        allowed = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = map(int, QUOTA.read_text("ascii").split())  # `max` is not a number
        allowed = min(allowed, -(-quota // period))
    return max(allowed, 1)


@contextlib.contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable garbage collection in the context, because a run creates millions of long-lived objects.

    The objects are frozen at exit, so that the interpreter does not scan them when it shuts down.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if was_enabled:
            # move all objects to the oldest generation, so that the next collection does not scan them
            if gc.get_freeze_count() < FROZEN_AT_STARTUP:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
