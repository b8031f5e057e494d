"""Bugs of fsrace-lint, reported in a form that helps users."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class InternalError(Exception):
    """A bug of fsrace-lint. The message is one line for the user."""


@contextlib.contextmanager
def guard(*expected: type[Exception]) -> Iterator[None]:
    """Convert unexpected exceptions to `InternalError`, unless `FSRACE_DEBUG` is set.

    Args:
        *expected: Exception types that are not bugs.

    Raises:
        InternalError: Another exception was raised.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (InternalError, *expected)) or os.environ.get("FSRACE_DEBUG"):
            raise
        import traceback  # noqa: PLC0415  # needed only for a bug

        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InternalError(
            f"internal error: {what} ({Path(frame.filename).name}:{frame.lineno}). This is a bug in "
            "fsrace-lint. Please report it with the traceback that `FSRACE_DEBUG=1` prints."
        ) from error
