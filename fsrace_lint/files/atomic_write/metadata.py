"""Copy the metadata of an old file to a new one: owner, mode, access list, and extended attributes."""

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
"""Attributes that users set. Others describe how a filesystem stores the file, as `lustre.lov` does."""
_DIGESTS: Final = frozenset({"security.ima", "security.evm"})
"""Digests of the old content that the kernel stores."""
_LABEL: Final = re.compile(r"security\.(?!capability$).*", re.DOTALL)
"""Labels of a security policy, which may insist on the label that it gives to new files."""


class ObstacleError(OSError):
    """The file must not be replaced. `strerror` gives the reason, as a predicate that follows the path."""

    def __init__(self, reason: str) -> None:
        """Store the reason."""
        super().__init__(errno.EPERM, reason)

    def __str__(self) -> str:
        """Return the reason alone."""
        return str(self.strerror)


def dress(descriptor: int, temporary: Path, target: Path, status: os.stat_result) -> None:
    """Copy all metadata of an existing file to a new one.

    Args:
        descriptor: The new file, open for writing.
        temporary: The path of the new file.
        target: The old file.
        status: The status of the old file.

    Raises:
        ObstacleError: Some metadata cannot be preserved.
        OSError: The metadata cannot be read.
    """
    # the order matters: chown clears setuid and capabilities, and an access list changes the mode
    _give(descriptor, status)
    _copy_attributes(descriptor, target)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        else:
            temporary.chmod(mode)
        if hasattr(os, "fchmod") and stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
            raise ObstacleError(f"has mode {mode:o}, which would be lost")


def _give(descriptor: int, status: os.stat_result) -> None:
    """Change the owner and group of a file to those of the old one."""
    if not hasattr(os, "fchown") or _owners(os.fstat(descriptor)) == _owners(status):
        return
    with contextlib.suppress(OSError):
        os.fchown(descriptor, status.st_uid, status.st_gid)
    now = os.fstat(descriptor)
    if now.st_uid != status.st_uid:
        raise ObstacleError("belongs to another user, and replacing it would change the owner")
    if now.st_gid != status.st_gid:
        raise ObstacleError("belongs to a group that you cannot assign to the new file")


def _owners(status: os.stat_result) -> tuple[int, int]:
    return status.st_uid, status.st_gid


def _copy_attributes(descriptor: int, target: Path) -> None:
    """Copy access lists and extended attributes, and remove those inherited from the directory."""
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
                what = "access list" if "acl" in name.partition(".")[2] else f"extended attribute `{name}`"
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
