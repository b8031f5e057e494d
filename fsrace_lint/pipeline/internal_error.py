"""Bugs of ours, as a user should hear of them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class InternalError(Exception):
    """A bug of ours; the message is one line for the user."""


@contextlib.contextmanager
def guard(*expected: type[Exception]) -> Iterator[None]:
    """Turn a bug of ours into an InternalError; with FSRACE_DEBUG=1 it stays as it is.

    Args:
        *expected: Exceptions that are no bugs.

    Raises:
        InternalError: Something else was raised.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (InternalError, *expected)) or os.environ.get("FSRACE_DEBUG"):
            raise
        import traceback  # noqa: PLC0415  # for a bug only

        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InternalError(
            f"internal failure: {what} ({Path(frame.filename).name}:{frame.lineno}). This is a bug in "
            "fsrace-lint; please report it together with what is printed when FSRACE_DEBUG=1 is set."
        ) from error
