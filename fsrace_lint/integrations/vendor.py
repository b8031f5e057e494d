"""Copies of the helpers in other projects: creates them, and detects changes by other authors."""

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
"""The file name of a copy in a directory."""

_HEADER: Final = re.compile(
    rb"# Written by fsrace-lint (\S+) vendor, sha256:([0-9a-f]{64})\. Do not edit it\.\r?\n"
)


class Copy(enum.Enum):
    """The state of the file at the path of a copy."""

    MISSING = "does not exist; run `fsrace-lint vendor` to create it"
    CURRENT = "is up to date"
    OLD = "was written by another version of fsrace-lint; run `fsrace-lint vendor` to update it"
    CHANGED = "was changed after `fsrace-lint vendor` wrote it; use `--force` to overwrite it"
    FOREIGN = "is not a copy of the helpers; use `--force` to overwrite it"

    @property
    def is_ours(self) -> bool:
        """Whether the file can be overwritten without losing changes of other authors."""
        return self in {Copy.MISSING, Copy.CURRENT, Copy.OLD}


def look(file: Path) -> Copy:
    """Return the state of the file at the path of a copy.

    Args:
        file: The path.

    Returns:
        The state.

    Raises:
        OSError: The file cannot be read.
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
    # A checkout may have changed the line endings.
    body = data[header.end() :].replace(b"\r\n", b"\n")
    if hashlib.sha256(body).hexdigest().encode() != header[2]:
        return Copy.CHANGED
    return Copy.CURRENT if body == _helpers() else Copy.OLD


def write(file: Path, *, force: bool = False) -> Copy:
    """Write a copy with a header that contains its version and digest, unless this would lose changes.

    Args:
        file: The path; its directory must exist.
        force: Whether to overwrite any file.

    Returns:
        The previous state. Nothing is written if the copy is up to date, or if the file is not ours and
        `force` is false.

    Raises:
        OSError: The file cannot be read or written, or another process changed it; the previous file remains.
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
