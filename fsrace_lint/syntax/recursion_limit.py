"""How deep code may be nested: the same wherever a run is started from, and more in the rooms behind."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SYNTAX: Final = 1000
"""The frames in which a file is taken apart: what needs more is nested too deeply."""
MEANING: Final = 4 * SYNTAX
"""The frames for what is made of that: no room takes so many more for a level than the syntax does."""
TOO_DEEP: Final = "the code is nested too deeply to be analyzed"


@contextlib.contextmanager
def frames(count: int) -> Iterator[None]:
    """Let calls go so deep from here, whatever stands on the stack already.

    Args:
        count: How many frames there may be.

    Yields:
        Nothing; inside, a RecursionError is raised where there would be more.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_standing() + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _standing() -> int:
    """Count the frames on the stack."""
    frame, count = sys._getframe(), 0  # the documented way, and `inspect` would be loaded for it
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count
