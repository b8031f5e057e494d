"""Copies of the helpers in other projects: written, and told from what somebody made of them."""

from __future__ import annotations

import enum
import hashlib
import re
from pathlib import Path
from typing import Final

from fsrace_lint import __version__
from fsrace_lint.files import bounded_read
from fsrace_lint.files.atomic_write import exchange, within

NAME: Final = "fs_safe.py"
"""What a copy is called in a folder."""

_HEADER: Final = re.compile(
    rb"# Written by fsrace-lint (\S+) vendor, sha256:([0-9a-f]{64})\. Do not edit it\.\r?\n"
)


class Copy(enum.Enum):
    """What there is at the place of a copy."""

    MISSING = "is not there"
    CURRENT = "is the copy of this version"
    OLD = "is the copy of another version"
    CHANGED = "was changed after it was written; --force writes it again"
    FOREIGN = "is no copy of the helpers; --force replaces it"

    @property
    def is_ours(self) -> bool:
        """Whether nothing is lost where it is written again."""
        return self in {Copy.MISSING, Copy.CURRENT, Copy.OLD}


def look(file: Path) -> Copy:
    """Tell what stands at the place of a copy.

    Args:
        file: The place.

    Returns:
        What there is.

    Raises:
        OSError: It cannot be read.
    """
    return _told(_read(file))


def _read(file: Path) -> bytes | None:
    try:
        return bounded_read.read(file)
    except FileNotFoundError:
        return None


def _told(data: bytes | None) -> Copy:
    if data is None:
        return Copy.MISSING
    header = _HEADER.match(data)
    if header is None:
        return Copy.FOREIGN
    # A checkout may have given it other line endings.
    body = data[header.end() :].replace(b"\r\n", b"\n")
    if hashlib.sha256(body).hexdigest().encode() != header[2]:
        return Copy.CHANGED
    return Copy.CURRENT if body == _helpers() else Copy.OLD


def write(file: Path, *, force: bool = False) -> Copy:
    """Write a copy, with its version and its digest above it, if nothing of somebody else is lost by it.

    Args:
        file: The place; its folder must be there.
        force: Whether to write it whatever is there.

    Returns:
        What was there: where it is the copy of this version, or not ours and not forced, nothing is written.

    Raises:
        OSError: It cannot be read or written, or was changed in the meantime; what was there still is.
    """
    before = _read(file)
    copy = _told(before)
    if copy is not Copy.CURRENT and (copy.is_ours or force):
        body = _helpers()
        digest = hashlib.sha256(body).hexdigest()
        header = f"# Written by fsrace-lint {__version__} vendor, sha256:{digest}. Do not edit it.\n"
        exchange(within(file), before, header.encode() + body)
    return copy


def _helpers() -> bytes:
    return Path(__file__).parents[1].joinpath("safe.py").read_bytes().replace(b"\r\n", b"\n")
