"""Put a file in its place: written beside it, then renamed, so that a reader never sees half of it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_EXCLUSIVE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class ObstacleError(OSError):
    """What is there must not be replaced; `strerror` says why, in words that follow its name."""

    def __init__(self, reason: str) -> None:
        """Take the reason."""
        super().__init__(errno.EPERM, reason)

    def __str__(self) -> str:
        """Give the reason alone."""
        return str(self.strerror)


def within(file: Path) -> Path:
    """Tell where a file lies that somebody has named, with links followed as far as he can have meant them.

    Those who wrote a project can leave links in it. So a name below the current folder leads nowhere
    out of it, another one nowhere out of its own folder, and no link into the folder of git, where
    a file can be a program that git runs.

    Args:
        file: The file, which need not be there.

    Returns:
        Its path without links.

    Raises:
        ObstacleError: A link leads elsewhere.
    """
    named = Path(os.path.abspath(file))  # noqa: PTH100  # links stay
    target = Path(os.path.realpath(file))
    folder = named.parent
    with contextlib.suppress(OSError):  # the current folder is gone
        folder = Path.cwd() if Path.cwd() in named.parents else folder
    bound = Path(os.path.realpath(folder))
    if target != bound / named.relative_to(folder):
        is_within = bound in target.parents and ".git" not in target.relative_to(bound).parts
        if not is_within:
            raise ObstacleError(f"is a symbolic link, or behind one, and leads to {target}: name that itself")
    return target


def put(file: Path, data: bytes) -> None:
    """Give a file new content, whatever it holds.

    A symbolic link stays one, and its target is replaced. Owner and mode are kept.

    Args:
        file: The file, which need not be there.
        data: All that it is to hold.

    Raises:
        ObstacleError: It is read-only, has other hard links, is no regular file, or a link
            leads elsewhere, as `within` says.
        OSError: It cannot be written; what was there still is.
    """
    target = within(file)
    _place(target, data, lambda: _status(target))


def exchange(file: Path, before: bytes | None, after: bytes) -> None:
    """Give a file new content, if it holds what it is known to hold.

    Args:
        file: The file, as for `put`.
        before: What it holds, None if it is not there. There it may hold `after` already.
        after: All that it is to hold.

    Raises:
        ObstacleError: As for `put`, and where somebody else changed it in the meantime.
        OSError: It cannot be written; what was there still is.
    """
    target = _target(file)

    def look() -> os.stat_result | None:
        status = _status(target)
        if before is None and status is not None and target.read_bytes() != after:
            raise ObstacleError("was made by somebody else in the meantime")
        if before is not None and target.read_bytes() != before:
            raise ObstacleError("was changed by somebody else in the meantime")
        return status

    _place(target, after, look, is_new=before is None)


def _target(file: Path) -> Path:
    """Follow the links of a file."""
    try:
        return file.resolve()
    except RuntimeError:  # what Python says of links in a circle before 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def _status(target: Path) -> os.stat_result | None:
    """Look at what is there, None for nothing, and refuse what must not be replaced."""
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ObstacleError("is not a regular file")
    if status.st_nlink > 1:
        raise ObstacleError("has more than one hard link, and replacing it would part them")
    if not status.st_mode & stat.S_IWUSR or not os.access(target, os.W_OK):
        raise ObstacleError("is read-only")
    return status


def _place(
    target: Path, data: bytes, look: Callable[[], os.stat_result | None], *, is_new: bool = False
) -> None:
    """Write a file beside the target, look at the target a second time, and put the file there."""
    status = look()
    temporary = target.with_name(f".fsrace-lint.{os.getpid()}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, _EXCLUSIVE, 0o666 if status is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if status is not None:
                _dress(descriptor, temporary, status)
            os.fsync(descriptor)
        look()
        if not (is_new and status is None and _linked(temporary, target)):
            os.replace(temporary, target)  # noqa: PTH105  # tests replace it in all versions
        _sync_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _linked(temporary: Path, target: Path) -> bool:
    """Give the file its name, if nobody else has it; tell whether links can be made here."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise ObstacleError("was made by somebody else in the meantime") from None
    except (OSError, AttributeError, NotImplementedError):
        return False
    return True


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
