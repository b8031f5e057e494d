"""Put a file in its place: written beside it, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def put(file: Path, data: bytes) -> None:
    """Give a file new content; a reader sees the old one or the new one, never half of it.

    Args:
        file: The file, or a link to it, which stays one.
        data: All that it is to hold.

    Raises:
        OSError: It cannot be written; what was there still is.
    """
    target = file.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
