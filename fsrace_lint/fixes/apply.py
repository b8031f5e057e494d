"""Write a patch: a file is either as it was or as it should be, at every instant."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.fixes import Patch

_EXCLUSIVE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write(patch: Patch) -> str | None:
    """Replace a file by its repaired text.

    A symbolic link stays one, and its target is replaced. Mode bits are kept.

    Args:
        patch: The patch.

    Returns:
        None if the file is as the patch says, else why it was left alone.
    """
    if patch.before == patch.after:
        return None
    try:
        target = patch.file.resolve(strict=True)
        status = target.stat()
        return _obstacle(target, status, patch.before) or _replace(target, status, patch)
    except (OSError, RuntimeError) as error:
        return f"cannot be written: {getattr(error, 'strerror', None) or error}"


def _obstacle(target: Path, status: os.stat_result, before: bytes) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_nlink > 1:
        return "has more than one hard link, and replacing it would part them"
    if not status.st_mode & stat.S_IWUSR or not os.access(target, os.W_OK):
        return "is read-only"
    if target.read_bytes() != before:
        return "was changed by somebody else in the meantime"
    return None


def _replace(target: Path, status: os.stat_result, patch: Patch) -> str | None:
    temporary = target.with_name(f".fsrace-lint.{os.getpid()}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, _EXCLUSIVE, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(patch.after)
            stream.flush()
            _dress(descriptor, temporary, status)
            os.fsync(descriptor)
        reason = _obstacle(target, target.stat(), patch.before)
        if reason is None:
            os.replace(temporary, target)
            _sync_folder(target.parent)
        return reason
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _dress(descriptor: int, temporary: Path, status: os.stat_result) -> None:
    """Give the new file the owner and the mode of the old one, in this order: chown clears setuid."""
    if hasattr(os, "fchown"):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, status.st_uid, status.st_gid)
    mode = stat.S_IMODE(status.st_mode)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)
    else:
        temporary.chmod(mode)


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
