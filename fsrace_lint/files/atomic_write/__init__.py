"""Put a file in its place: written beside it, then renamed, so that a reader never sees half of it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from fsrace_lint.files.atomic_write import stale_temporaries
from fsrace_lint.files.atomic_write.metadata import ObstacleError, dress
from fsrace_lint.files.atomic_write.rename_exchange import swap

__all__ = ["ObstacleError", "exchange", "put", "within"]

_EXCLUSIVE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_LOOKS: Final = 5
"""How often a file may be replaced while somebody looks at it."""
_MADE: Final = "was made by somebody else in the meantime"
_CHANGED: Final = "was changed by somebody else in the meantime"
_GONE: Final = "was deleted by somebody else in the meantime"
_LED: Final = "leads elsewhere since somebody else changed it in the meantime"


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

    A symbolic link stays one, and its target is replaced. Owner, mode and attributes are kept.

    Args:
        file: The file, which need not be there.
        data: All that it is to hold.

    Raises:
        ObstacleError: It is read-only, has other hard links, is no regular file, would lose something
            else, or a link leads elsewhere, as `within` says.
        OSError: It cannot be written; what was there still is.
    """
    target = within(file)
    beside = _Beside(target, data, _status(target))
    with beside:
        _status(target)
        os.replace(beside.path, target)  # noqa: PTH105  # tests replace it in all versions
        sync_folder(target.parent)
    stale_temporaries.sweep(target.parent)


def exchange(file: Path, before: bytes | None, after: bytes, *, below: Path | None = None) -> None:
    """Give a file new content, if it holds what it is known to hold, or has the new content already.

    Args:
        file: The file, as for `put`.
        before: What it holds, None if it is not there.
        after: All that it is to hold.
        below: The folder that a link must not lead out of; None for any.

    Raises:
        ObstacleError: As for `put`, and where somebody else changed it in the meantime.
        OSError: It cannot be written; what was there still is.
    """
    target = _resolved(file)
    if below is not None and not target.is_relative_to(_resolved(below)):
        raise ObstacleError(f"leads out of the project, to {target}")
    known = _look(file, target, before, after)
    if known.held == after:
        return
    beside = _Beside(target, after, known.status)
    with beside:
        now = _look(file, target, before, after)
        if now.held == after:
            return
        if _traits(now.status) != _traits(known.status):
            raise ObstacleError(_CHANGED)
        beside.take_place(before)
    stale_temporaries.sweep(target.parent)


class _Held(NamedTuple):
    """What a place held when it was looked at: None for nothing."""

    status: os.stat_result | None
    held: bytes | None


def _resolved(file: Path) -> Path:
    """Follow links; a circle of them raises OSError in all versions of Python."""
    try:
        return file.resolve()
    except RuntimeError as error:
        raise ObstacleError("is a link in a circle of links") from error


def _look(file: Path, target: Path, before: bytes | None, after: bytes) -> _Held:
    """Look at what is there, and refuse what is neither the old nor the new content.

    What was asked last is asked again, so that nothing is old when this ends.
    """
    if _resolved(file) != target:
        raise ObstacleError(_LED)
    for _ in range(_LOOKS):
        status = _status(target)
        if status is None:
            if before is not None:
                raise ObstacleError(_GONE)
            return _Held(None, None)
        try:
            held = target.read_bytes()
            if _marks(target.stat()) != _marks(status):
                continue
        except FileNotFoundError:
            continue
        if held in (before, after):
            return _Held(status, held)
        break
    raise ObstacleError(_MADE if before is None else _CHANGED)


def _status(target: Path) -> os.stat_result | None:
    """Ask what is there, None for nothing, and refuse what must not be replaced."""
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ObstacleError("is not a regular file")
    if status.st_nlink > 1:
        stale_temporaries.sweep(target.parent)  # a new file has two names while it is put there
        status = os.lstat(target)
    if status.st_nlink > 1:
        raise ObstacleError("has more than one hard link, and replacing it would part them")
    if not status.st_mode & stat.S_IWUSR or not os.access(target, os.W_OK):
        raise ObstacleError("is read-only")
    return status


def _traits(status: os.stat_result | None) -> tuple[int, ...]:
    """Give what the new file has from the old one."""
    return () if status is None else (status.st_mode, status.st_uid, status.st_gid)


def _marks(status: os.stat_result) -> tuple[int, ...]:
    """Give what tells that a file is still the one it was."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Beside:
    """A file written beside the one whose place it is to take; it goes where it does not come to that."""

    def __init__(self, target: Path, data: bytes, status: os.stat_result | None) -> None:
        self.path = target.with_name(stale_temporaries.name())
        self._target, self._data, self._status = target, data, status

    def __enter__(self) -> None:
        descriptor = os.open(self.path, _EXCLUSIVE, 0o666 if self._status is None else 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(self._data)
                stream.flush()
                if self._status is not None:
                    dress(descriptor, self.path, self._target, self._status)
                os.fsync(descriptor)
        except BaseException:
            self._remove()
            raise

    def __exit__(self, *error: object) -> None:
        self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()

    def take_place(self, before: bytes | None) -> None:
        """Put it there.

        Args:
            before: What is there: None for nothing.

        Raises:
            ObstacleError: Something else is.
            OSError: That cannot be done.
        """
        try:
            is_swapped = before is not None and swap(self.path, self._target)
        except FileNotFoundError:
            raise ObstacleError(_GONE) from None
        if before is None:
            self._appear()
        elif not is_swapped:
            os.replace(self.path, self._target)  # noqa: PTH105  # tests replace it in all versions
        elif not self._holds(before, self._data):
            self._give_back()
        sync_folder(self._target.parent)
        # that took its time: who had the old file open has written by now
        if before is not None and is_swapped and not self._holds(before, self._data):
            self._give_back()

    def _appear(self) -> None:
        """Take the name, if nobody else has it by now; where no links can be made, that is not asked."""
        try:
            os.link(self.path, self._target)
        except FileExistsError:
            raise ObstacleError(_MADE) from None
        except (OSError, AttributeError, NotImplementedError):
            os.replace(self.path, self._target)  # noqa: PTH105  # tests replace it in all versions

    def _holds(self, *texts: bytes) -> bool:
        """Tell whether what has the name of the temporary file is like the old file, with such a text."""
        try:
            status = self.path.lstat()
            is_same = _traits(status) == _traits(self._status) and status.st_nlink == 1
            return is_same and self.path.read_bytes() in texts
        except OSError:
            return False

    def _give_back(self) -> NoReturn:
        """Put back what somebody else wrote in the last instant; if he writes again, both are kept."""
        with contextlib.suppress(FileNotFoundError):
            if swap(self.path, self._target) and self._holds(self._data):
                raise ObstacleError(_CHANGED)
        saved = self._target.with_name(f"{self._target.name}{self.path.name.removesuffix('.tmp')}.saved")
        self.path.rename(saved)
        raise ObstacleError(f"{_CHANGED}; a text of his is now in {saved.name}")


def sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
