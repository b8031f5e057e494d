"""The protocol between clients and the daemon, and the path of its socket.

Every check with a daemon loads this module first, so it imports little. Even `contextlib` takes too long.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib

from fsrace_lint import __version__

TAKEN = b"."
"""The daemon sends this when it starts on a request. A busy daemon sends nothing."""
CODE = 0
"""The number of the last frame, with the exit status. Other frames have the number of their stream."""
NONE = b"none"
"""Sent instead of an exit status if the client must run the check itself."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IDENTITY = os.fsencode(f"{__version__}\n{sys.version}\n{sys.prefix}\n{_PACKAGE}")
"""The installation. A daemon answers only clients of the same installation."""
_PRIVATE = 0o700


def place() -> str | None:
    """Return the path of the socket, in a directory that only this user can access. Create the directory.

    Returns:
        The path, or None if there is no such directory.
    """
    if not hasattr(os, "geteuid"):
        return None
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # in a private directory
    folder = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or temporary, f"fsrace-lint-{os.geteuid()}")
    try:
        try:  # noqa: SIM105  # see the docstring of the module
            os.mkdir(folder, _PRIVATE)
        except FileExistsError:
            pass
        status = os.lstat(folder)
    except OSError:
        return None
    is_private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) & ~_PRIVATE == 0
    is_ours = is_private and status.st_uid == os.geteuid()
    return os.path.join(folder, f"{zlib.crc32(IDENTITY):08x}.sock") if is_ours else None


class Request:
    """A request of a client, with the state of its process that affects the answer."""

    def __init__(self, verb: str, args: list[str]) -> None:
        """Create a request for this process.

        Args:
            verb: `check`, `keep`, `status`, or `stop`.
            args: The arguments of the command `check`.

        Raises:
            OSError: The current directory was deleted.
        """
        self.identity = IDENTITY
        self.verb, self.args = verb, args
        self.folder = os.getcwd()
        self.encoding, self.errors, self.is_terminal = "utf-8", "strict", False
        self.environment = dict(os.environ)
        if sys.stdout is not None:
            self.encoding, self.errors = sys.stdout.encoding, sys.stdout.errors or self.errors
            self.is_terminal = sys.stdout.isatty()
        try:  # noqa: SIM105  # see the docstring of the module
            self.environment.setdefault("COLUMNS", str(os.get_terminal_size(1).columns))
        except OSError:  # standard output is not a terminal
            pass

    def pack(self) -> bytes:
        """Return the request as bytes, separated by NUL, which no argument or variable contains."""
        fixed = (self.verb, self.folder, self.encoding, self.errors, str(int(self.is_terminal)))
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        texts = (*fixed, str(len(self.args)), *self.args, *variables)
        return b"\0".join([self.identity, *map(os.fsencode, texts)])

    @staticmethod
    def unpack(data: bytes) -> Request:
        """Parse the result of `pack`.

        Raises:
            ValueError: The data is invalid.
        """
        identity, *fields = data.split(b"\0")
        verb, folder, encoding, errors, flag, count, *texts = map(os.fsdecode, fields)
        request = object.__new__(Request)
        request.identity, request.verb, request.folder = identity, verb, folder
        request.encoding, request.errors, request.is_terminal = encoding, errors, flag == "1"
        request.args = texts[: int(count)]
        variables = (text.partition("=") for text in texts[int(count) :])
        request.environment = {name: value for name, _, value in variables}
        return request


def frame(stream: int, data: bytes) -> bytes:
    """Return a frame: the number of a stream, and data that is written to it."""
    return b"%d %d\n%b" % (stream, len(data), data)


def frames(data: bytes) -> list[tuple[int, bytes]]:
    """Parse frames.

    Raises:
        ValueError: The data is incomplete.
    """
    found = []
    while data:
        head, newline, data = data.partition(b"\n")
        stream, length = map(int, head.split(b" "))
        if not newline or not 0 <= length <= len(data):
            raise ValueError("a frame is truncated")
        found.append((stream, data[:length]))
        data = data[length:]
    if not found or found[-1][0] != CODE:
        raise ValueError("the final frame is missing")
    return found
