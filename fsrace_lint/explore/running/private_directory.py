"""A directory of this user alone, whose path is the same each time, unless another process uses it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BASE: Final = "fsrace"
_MOST: Final = 100
"""The number of explorations of one scenario that can run at the same time with such a path."""
_TRIES: Final = 10
_OPEN: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextlib.contextmanager
def held(place: Path, name: str) -> Iterator[Path]:
    """Create a directory, lock it, and delete it at the end.

    The lock ends with its process. Directories that a killed process has left are deleted at the next start.

    Args:
        place: The directory in which to create it; other users may write there too.
        name: Decides the path: `<place>/fsrace/<digest of the name>`. A suffix is added if that is in use.

    Yields:
        The directory; it is empty.
    """
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    found = _first_free(place, digest)
    if found is None:
        folder = Path(tempfile.mkdtemp(prefix="fsrace-", dir=place))
        try:
            yield folder
        finally:
            remove(folder)
        return
    folder, lock = found
    try:
        yield folder
    finally:
        remove(folder)
        os.close(lock)
        with contextlib.suppress(OSError):  # other explorations still use it
            folder.parent.rmdir()


def _base(place: Path) -> Path | None:
    """Create the directory of this user; refuse one that another user made, or can change, and links."""
    for name in (_BASE, f"{_BASE}-{os.geteuid()}"):
        base = place / name
        with contextlib.suppress(OSError):
            base.mkdir(0o700)
        try:
            found = base.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return base
    return None


def _first_free(place: Path, digest: str) -> tuple[Path, int] | None:
    for number in range(1, _MOST):
        for _ in range(_TRIES):
            base = _base(place)  # each time, because its last user deletes it
            if base is None:
                return None
            if number == 1:
                _delete_abandoned(base)
            folder = base / (digest if number == 1 else f"{digest}-{number}")
            try:
                folder.mkdir(0o700, exist_ok=True)
                lock = _lock(folder)
            except OSError:
                continue  # another process has just deleted it
            if lock is None:
                break
            return folder, lock
    return None


def _lock(folder: Path) -> int | None:
    """Lock a directory without waiting.

    Returns:
        The descriptor that holds the lock, or None if another process holds it.

    Raises:
        FileNotFoundError: The directory does not exist (any more).
    """
    import fcntl  # noqa: PLC0415  # not importable on Windows

    with contextlib.ExitStack() as stack:
        descriptor = os.open(folder, _OPEN)
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if os.fstat(descriptor).st_ino != folder.lstat().st_ino:
            raise FileNotFoundError(folder)
        stack.pop_all()
    return descriptor


def _delete_abandoned(base: Path) -> None:
    """Delete the directories of processes that were killed."""
    with contextlib.suppress(OSError):
        for folder in base.iterdir():
            lock = _lock(folder)
            if lock is not None:
                remove(folder)
                os.close(lock)


def remove(path: Path) -> None:
    """Delete a tree, whatever its modes are."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return
    except PermissionError:
        for folder, _, _ in os.walk(path):
            os.chmod(folder, 0o700)
            for name in os.listdir(folder):
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
        shutil.rmtree(path)
