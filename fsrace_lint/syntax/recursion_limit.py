"""Recursion limits that do not depend on the depth of the stack at which a run starts."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

SYNTAX: Final = 1000
"""The maximum number of frames for parsing a file; code that needs more is nested too deeply."""
MEANING: Final = 4 * SYNTAX
"""The maximum number of frames for the analysis, which needs at most four times as many per level."""
TOO_DEEP: Final = "code is nested too deeply to analyze"


@contextlib.contextmanager
def frames(count: int) -> Iterator[None]:
    """Set the recursion limit relative to the current depth of the stack.

    Args:
        count: The number of additional frames, beyond which calls raise `RecursionError`.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_standing() + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _standing() -> int:
    """Return the number of frames on the stack."""
    frame, count = sys._getframe(), 0  # the documented `inspect.currentframe` would import `inspect`
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count
