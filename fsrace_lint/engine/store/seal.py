"""The seal of cache files: only files that this user wrote are trusted, regardless of where they are.

A cache in a cloned repository or an unpacked archive can have the right owner and the right digests. It
cannot have a valid seal, because the key is never stored in a project.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import stat
from typing import Final

from fsrace_lint.files.atomic_write import stale_temporaries

VARIABLE: Final = "FSRACE_CACHE_KEY"
"""The environment variable that replaces the key in the user's state directory."""
SIZE: Final = 20
"""The size of a seal in bytes."""

_NAME: Final = "cache.key"
_KEY_SIZE: Final = 32
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def seal(data: bytes) -> bytes:
    """Return the seal of some bytes. The first call creates the key.

    Raises:
        OSError: There is no key, and none can be created.
    """
    key = _key()
    if key is None:
        folder = _folder()
        try:
            key = made_key(folder)
        except OSError as error:
            where = f" in {folder}" if folder else ""
            raise OSError(f"cannot create the cache key{where}: {error.strerror or error}") from error
    return _sealed(key, data)


def is_sealed(data: bytes, mark: bytes) -> bool:
    """Return whether a seal is valid for some bytes; false if there is no key."""
    key = _key()
    return key is not None and hmac.compare_digest(_sealed(key, data), mark)


def _sealed(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=SIZE, key=key, person=b"fsrace-lint seal").digest()


def _key() -> bytes | None:
    """Return the key, or None if there is none."""
    given = os.environ.get(VARIABLE)
    if given:
        return hashlib.blake2b(os.fsencode(given), digest_size=_KEY_SIZE).digest()
    try:
        return read_key(_folder())
    except OSError:
        return None


def _folder() -> str:
    """Return the directory for state of this program; empty if the user has no home directory."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA", "")
    else:
        base = os.environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(base):  # as the XDG specification requires
            base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "fsrace-lint") if os.path.isabs(base) else ""


@functools.lru_cache(maxsize=4)
def read_key(folder: str) -> bytes:
    """Read the key.

    Raises:
        OSError: The key does not exist, or is not a key file of this user.
    """
    if not folder:
        raise OSError("no home directory found")
    with open(os.path.join(folder, _NAME), "rb", opener=_opened) as stream:
        status = os.fstat(stream.fileno())
        key = stream.read(_KEY_SIZE + 1)
    if not stat.S_ISREG(status.st_mode) or len(key) != _KEY_SIZE:
        raise OSError(f"{os.path.join(folder, _NAME)} is not a cache key")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise OSError(f"{os.path.join(folder, _NAME)} belongs to another user")
    return key


def _opened(file: str, flags: int) -> int:
    return os.open(file, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def made_key(folder: str) -> bytes:
    """Create a key, unless another process does; all processes use the first one.

    Raises:
        OSError: The key cannot be created.
    """
    if not folder:
        raise OSError("no home directory found")
    _refuse_of_others(folder)
    # on NFS, `makedirs` with `exist_ok` can fail for a directory that another host just created
    with contextlib.suppress(FileExistsError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    temporary = os.path.join(folder, stale_temporaries.name())
    descriptor = os.open(temporary, _NEW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(os.urandom(_KEY_SIZE))
            stream.flush()
            os.fsync(descriptor)
        _put_first(temporary, os.path.join(folder, _NAME))
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    stale_temporaries.sweep(folder)
    return read_key(folder)


def _put_first(temporary: str, file: str) -> None:
    """Link or rename the temporary file to the key, unless the key exists."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        return
    except (OSError, AttributeError, NotImplementedError):
        # Hard links are not supported. If two processes get here at once, one may seal with the key
        # that the other replaces. Its cache is then ignored once.
        if not os.path.lexists(file):
            os.replace(temporary, file)


def _refuse_of_others(folder: str) -> None:
    """Raise `OSError` if root would create a key in the home directory of another user.

    The owner could not read that key.
    """
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    owner = None
    while owner is None:
        try:
            owner = os.stat(folder).st_uid
        except FileNotFoundError:  # noqa: PERF203  # two or three directories
            folder = os.path.dirname(folder)
    if owner != 0:
        raise OSError(f"{folder} belongs to another user")
