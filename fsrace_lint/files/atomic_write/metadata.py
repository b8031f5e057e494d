"""Give a new file what the old one had besides its text: owner, mode, access list and extended attributes."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_COPIED: Final = re.compile(r"user\..*|system\..*acl.*|security\..*", re.DOTALL)
"""Attributes that somebody has set. Others say how a filesystem stores the file, as `lustre.lov` does."""
_DIGESTS: Final = frozenset({"security.ima", "security.evm"})
"""What the kernel has noted of the old text."""
_LABEL: Final = re.compile(r"security\.(?!capability$).*", re.DOTALL)
"""What a policy decides: it may insist on the one that it gives to new files."""


class ObstacleError(OSError):
    """What is there must not be replaced; `strerror` says why, in words that follow its name."""

    def __init__(self, reason: str) -> None:
        """Take the reason."""
        super().__init__(errno.EPERM, reason)

    def __str__(self) -> str:
        """Give the reason alone."""
        return str(self.strerror)


def dress(descriptor: int, temporary: Path, target: Path, status: os.stat_result) -> None:
    """Make a new file in everything but its text like one that is there.

    Args:
        descriptor: The new file, open for writing.
        temporary: Its name.
        target: The old file.
        status: What the system says of the old file.

    Raises:
        ObstacleError: Something of it cannot be kept.
        OSError: It cannot be asked for.
    """
    # in this order: chown clears setuid and capabilities, and an access list changes the mode
    _give(descriptor, status)
    _copy_attributes(descriptor, target)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        else:
            temporary.chmod(mode)
        if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            raise ObstacleError(f"has the mode {mode:o}, which would be lost")


def _give(descriptor: int, status: os.stat_result) -> None:
    """Give a file to the owner and the group of the old one."""
    if not hasattr(os, "fchown") or _owners(os.fstat(descriptor)) == _owners(status):
        return
    with contextlib.suppress(OSError):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    now = os.fstat(descriptor)
    if now.st_uid != status.st_uid:
        raise ObstacleError("belongs to somebody else, and replacing it would take it from him")
    if now.st_gid != status.st_gid:
        raise ObstacleError("belongs to a group that replacing it would take it from")


def _owners(status: os.stat_result) -> tuple[int, int]:
    return status.st_uid, status.st_gid


def _copy_attributes(descriptor: int, target: Path) -> None:
    """Copy access lists and extended attributes, and drop what the new file has from its folder."""
    if not hasattr(os, "listxattr"):
        return
    old, new = _attributes(target), _attributes(descriptor)
    for name in sorted({*old, *new}):
        if old.get(name) == new.get(name):
            continue
        try:
            if name in old:
                os.setxattr(descriptor, name, old[name])
            else:
                os.removexattr(descriptor, name)
        except OSError as error:
            if not _LABEL.fullmatch(name):
                what = "access list" if "acl" in name.partition(".")[2] else f"extended attribute {name}"
                raise ObstacleError(f"has an {what} that would be lost: {error.strerror}") from error


def _attributes(file: int | Path) -> dict[str, bytes]:
    try:
        names = os.listxattr(file)
    except OSError as error:
        if error.errno in {errno.ENOTSUP, errno.ENOSYS, errno.EPERM}:
            return {}
        raise
    wanted = [name for name in names if _COPIED.fullmatch(name) and name not in _DIGESTS]
    return {name: os.getxattr(file, name) for name in wanted}
