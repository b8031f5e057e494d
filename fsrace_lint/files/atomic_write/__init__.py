"""Write a file atomically: write a temporary file in the same directory, then rename it."""

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
"""How many times to look again if other processes replace the file while it is read."""
_MADE: Final = "was created by another process during the run"
_CHANGED: Final = "was changed by another process during the run"
_GONE: Final = "was deleted by another process during the run"
_LED: Final = "was redirected to another file by another process during the run"


def within(file: Path) -> Path:
    """Resolve a path that the user named, and refuse links that lead to unexpected places.

    The authors of a project can leave links in it. A path below the current directory must not lead out of
    it, and any other path must not lead out of its own directory. No link may lead into a `.git` directory,
    where a file can be a program that git runs.

    Args:
        file: The file, which need not exist.

    Returns:
        The path without links.

    Raises:
        ObstacleError: A link leads elsewhere.
    """
    named = Path(os.path.abspath(file))  # noqa: PTH100  # links are not resolved
    target = Path(os.path.realpath(file))
    folder = named.parent
    with contextlib.suppress(OSError):  # the current directory was deleted
        folder = Path.cwd() if Path.cwd() in named.parents else folder
    bound = Path(os.path.realpath(folder))
    if target != bound / named.relative_to(folder):
        is_within = bound in target.parents and ".git" not in target.relative_to(bound).parts
        if not is_within:
            raise ObstacleError(f"goes through a symbolic link to {target}; pass the target path instead")
    return target


def put(file: Path, data: bytes) -> None:
    """Replace the content of a file, whatever it contains.

    A symbolic link is kept, and its target is replaced. Owner, mode, and attributes are preserved.

    Args:
        file: The file, which need not exist.
        data: The new content.

    Raises:
        ObstacleError: The file is read-only, has other hard links, is not a regular file, has metadata that
            would be lost, or is a link that `within` refuses.
        OSError: The file cannot be written. The old file is unchanged.
    """
    target = within(file)
    beside = _Beside(target, data, _status(target))
    with beside:
        _status(target)
        os.replace(beside.path, target)  # noqa: PTH105  # tests patch `os.replace` in all versions of Python
        sync_folder(target.parent)
    stale_temporaries.sweep(target.parent)


def exchange(file: Path, before: bytes | None, after: bytes, *, below: Path | None = None) -> None:
    """Replace the content of a file if it has the expected content. If it has the new content, do nothing.

    Args:
        file: The file, as for `put`.
        before: The expected content. None if the file must not exist.
        after: The new content.
        below: The directory that a link must not lead out of. None for no limit.

    Raises:
        ObstacleError: As for `put`, or another process changed the file.
        OSError: The file cannot be written. The old file is unchanged.
    """
    target = _resolved(file)
    if below is not None and not target.is_relative_to(_resolved(below)):
        raise ObstacleError(f"is a symbolic link to {target}, outside the project")
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
    """The status and content of a path when it was read. None if it did not exist."""

    status: os.stat_result | None
    held: bytes | None


def _resolved(file: Path) -> Path:
    """Resolve links. A loop of links raises `OSError` in all versions of Python."""
    try:
        return file.resolve()
    except RuntimeError as error:
        raise ObstacleError("is part of a loop of symbolic links") from error


def _look(file: Path, target: Path, before: bytes | None, after: bytes) -> _Held:
    """Return the current status and content, and refuse content that is neither old nor new.

    The status is read again after the content, so both are current when this returns.
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
    """Return the status of a path, or None if it does not exist. Refuse what must not be replaced."""
    try:
        status = os.lstat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ObstacleError("is not a regular file")
    if status.st_nlink > 1:
        stale_temporaries.sweep(target.parent)  # a new file has two names while it is moved into place
        status = os.lstat(target)
    if status.st_nlink > 1:
        raise ObstacleError("has more than one hard link, and replacing it would separate them")
    if not status.st_mode & stat.S_IWUSR or not os.access(target, os.W_OK):
        raise ObstacleError("is read-only")
    return status


def _traits(status: os.stat_result | None) -> tuple[int, ...]:
    """Return the properties that the new file takes over from the old one."""
    return () if status is None else (status.st_mode, status.st_uid, status.st_gid)


def _marks(status: os.stat_result) -> tuple[int, ...]:
    """Return the properties that identify an unchanged file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class _Beside:
    """A temporary file next to the target, to take its place. It is deleted if it does not."""

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
        """Move the temporary file to the target.

        Args:
            before: The expected content of the target. None if it must not exist.

        Raises:
            ObstacleError: The target has other content.
            OSError: The file cannot be moved.
        """
        try:
            is_swapped = before is not None and swap(self.path, self._target)
        except FileNotFoundError:
            raise ObstacleError(_GONE) from None
        if before is None:
            self._appear()
        elif not is_swapped:
            os.replace(self.path, self._target)  # noqa: PTH105  # tests patch `os.replace` in all versions of Python
        elif not self._holds(before, self._data):
            self._give_back()
        sync_folder(self._target.parent)
        # the sync took time, so a process that had the old file open may have written to it
        if before is not None and is_swapped and not self._holds(before, self._data):
            self._give_back()

    def _appear(self) -> None:
        """Create the target by a hard link, which fails if it exists. Without hard links, replace it."""
        try:
            os.link(self.path, self._target)
        except FileExistsError:
            raise ObstacleError(_MADE) from None
        except (OSError, AttributeError, NotImplementedError):
            os.replace(self.path, self._target)  # noqa: PTH105  # tests patch `os.replace` in all versions of Python

    def _holds(self, *texts: bytes) -> bool:
        """Return whether the temporary name now holds the old file, with one of these contents."""
        try:
            status = self.path.lstat()
            is_same = _traits(status) == _traits(self._status) and status.st_nlink == 1
            return is_same and self.path.read_bytes() in texts
        except OSError:
            return False

    def _give_back(self) -> NoReturn:
        """Restore what another process wrote at the last moment. If it writes again, keep both versions."""
        with contextlib.suppress(FileNotFoundError):
            if swap(self.path, self._target) and self._holds(self._data):
                raise ObstacleError(_CHANGED)
        saved = self._target.with_name(f"{self._target.name}{self.path.name.removesuffix('.tmp')}.saved")
        self.path.rename(saved)
        raise ObstacleError(f"{_CHANGED}; a version that it wrote is saved as {saved.name}")


def sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
