"""The seal on the files of a cache: only what this user wrote is believed, wherever the files come from.

A cache in a cloned repository or an unpacked archive can have the right owner and the right digests. It
cannot have the key, which never lies in a project.
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
"""The environment variable that takes the place of the key in the user's own folder."""
SIZE: Final = 20
"""The bytes of a seal."""

_NAME: Final = "cache.key"
_KEY_SIZE: Final = 32
_READ: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
)
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def seal(data: bytes) -> bytes:
    """Give the seal of some bytes; the first one makes the key.

    Raises:
        OSError: There is no key, and none can be made.
    """
    key = _key()
    if key is None:
        folder = _folder()
        try:
            key = made_key(folder)
        except OSError as error:
            raise OSError(f"its key in {folder}: {error.strerror or error}") from error
    return _sealed(key, data)


def is_sealed(data: bytes, mark: bytes) -> bool:
    """Tell whether a seal is one of ours on these bytes; without a key there is none."""
    key = _key()
    return key is not None and hmac.compare_digest(_sealed(key, data), mark)


def _sealed(key: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=SIZE, key=key, person=b"fsrace-lint seal").digest()


def _key() -> bytes | None:
    """Give the key, None where there is none."""
    given = os.environ.get(VARIABLE)
    if given:
        return hashlib.blake2b(os.fsencode(given), digest_size=_KEY_SIZE).digest()
    try:
        return read_key(_folder())
    except OSError:
        return None


def _folder() -> str:
    """Give the folder of what this user's programs keep; empty where there is none."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA", "")
    else:
        base = os.environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(base):  # as its specification says
            base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "fsrace-lint") if os.path.isabs(base) else ""


@functools.lru_cache(maxsize=4)
def read_key(folder: str) -> bytes:
    """Read the key.

    Raises:
        OSError: It is not there, or is none of this user alone.
    """
    if not folder:
        raise OSError("there is no home folder")
    with os.fdopen(os.open(os.path.join(folder, _NAME), _READ), "rb") as stream:
        status = os.fstat(stream.fileno())
        key = stream.read(_KEY_SIZE + 1)
    if not stat.S_ISREG(status.st_mode) or len(key) != _KEY_SIZE:
        raise OSError(f"{os.path.join(folder, _NAME)} is none")
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise OSError(f"{os.path.join(folder, _NAME)} belongs to another user")
    return key


def made_key(folder: str) -> bytes:
    """Make a key, unless another process does: all take the first one.

    Raises:
        OSError: It cannot be made.
    """
    if not folder:
        raise OSError("there is no home folder")
    _refuse_of_others(folder)
    # on NFS a folder that another host has just made can be told of too late, even to `exist_ok`
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
    """Give the key its name, if there is none of that name."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        return
    except (OSError, AttributeError, NotImplementedError):
        # No links here: a second process can only win together with the first, and then seals
        # once with a key that is gone, which is no more than a cache that is not used.
        if not os.path.lexists(file):
            os.replace(temporary, file)


def _refuse_of_others(folder: str) -> None:
    """Keep root from leaving a key in the home of another user, who could not read it."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    owner = None
    while owner is None:
        try:
            owner = os.stat(folder).st_uid
        except FileNotFoundError:  # noqa: PERF203  # two or three folders
            folder = os.path.dirname(folder)
    if owner != 0:
        raise OSError(f"{folder} belongs to another user")
