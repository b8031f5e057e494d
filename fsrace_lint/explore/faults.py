"""Faults: errors that a call can return although the caller did nothing wrong, as the man pages list them.

A signal is a fault only for a process that has installed a handler. Python retries a call that a signal
interrupts, unless the handler raises an exception: PEP 475. A local disk is not interruptible: signal(7).
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.instrument.interception import FilesystemCall

_CREATING: Final = {"open", "mkdir", "mkfifo", "mknod", "symlink", "link", "rename", "replace"}
_READING: Final = {"read", "pread", "readv", "preadv"}
_WRITING: Final = {"write", "pwrite", "writev", "pwritev", "sendfile", "copy_file_range"}
_SYNCING: Final = {"fsync", "fdatasync"}
_CHANGING: Final = {"truncate", "ftruncate", "chmod", "lchmod", "fchmod", "chown", "lchown", "fchown"}
_LOCKING: Final = {"flock", "lockf"}
_LOOKUPS: Final = {
    *("stat", "lstat", "fstat", "access", "readlink", "listdir", "scandir"),
    *("exists", "lexists", "isfile", "isdir", "islink"),
}
FAULTS: Final = {
    "ENOSPC": _CREATING | _WRITING | _SYNCING | {"close", "posix_fallocate", "setxattr"},
    "EIO": _READING
    | _WRITING
    | _SYNCING
    | _CHANGING
    | {"close", "link", "unlink", "symlink", "readlink", "access"},
    "EINTR": _LOCKING,
    "ESTALE": _CREATING
    | _READING
    | _WRITING
    | _SYNCING
    | _CHANGING
    | _LOOKUPS
    | _LOCKING
    | {"unlink", "rmdir", "utime", "chdir"},
}
"""The calls that can return each error.

A network filesystem can also end a transfer early with EINTR. ESTALE exists only there: the server does not
know a file handle any longer.
"""
NETWORK_ONLY: Final = ("ESTALE",)
_MISTAKES: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    TypeError,
    ValueError,
)


class Faults:
    """The faults that one process can get.

    Args:
        names: The errors of the scenario.
        is_network: Whether the filesystem is a network filesystem.
    """

    def __init__(self, names: Iterable[str] = (), *, is_network: bool = False) -> None:
        self._names = tuple(names)
        self._is_network = is_network
        self._handlers = _handlers() if "EINTR" in self._names else {}
        self._raised: list[BaseException] = []
        self._numbers: list[int | None] = []

    def of(self, call: FilesystemCall[Any]) -> tuple[str, ...]:
        """Return the errors that a call can get."""
        return tuple(name for name in self._names if self._can_get(call, name)) if self._names else ()

    def _can_get(self, call: FilesystemCall[Any], name: str) -> bool:
        kind = call.name.partition("[")[0]
        if name == "EINTR":
            is_waiting = kind in FAULTS[name] and call.lock is not None
            return (call.is_rest and self._is_network) or (is_waiting and bool(self._signals()))
        if not call.can_fail or (name == "ENOSPC" and kind in _CREATING and not call.creates):
            return False
        return kind in FAULTS[name]

    def _signals(self) -> list[int]:
        return [number for number, handler in _handlers().items() if self._handlers.get(number) != handler]

    def interrupt(self) -> None:
        """Run the handlers of the process, as if their signals arrived; an exception of one ends the call."""
        for number in self._signals():
            handler = _handlers()[number]
            try:
                handler(number, None)
            except BaseException as error:
                self._raised.append(error)
                raise

    def note(self, error: OSError) -> None:
        """Remember an error that was injected."""
        self._numbers.append(error.errno)

    def explain(self, error: BaseException | None) -> bool:
        """Return whether an injected error is the cause of an exception.

        An exception that replaces the error in an `except` block counts, unless it looks like a mistake in
        this block.
        """
        while error is not None:
            if error in self._raised or (isinstance(error, OSError) and error.errno in self._numbers):
                return True
            if error.__cause__ is None and isinstance(error, _MISTAKES):
                return False
            error = error.__cause__ or error.__context__
        return False


def _handlers() -> dict[int, Any]:
    found = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {int(number): handler for number, handler in found.items() if callable(handler)}
