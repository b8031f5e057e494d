"""What a client and a daemon say to each other, and where they meet.

Loaded before anything else of a check, so it imports next to nothing: `contextlib` takes longer to load.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib

from fsrace_lint import __version__

TAKEN = b"."
"""What a daemon says once it works on a request: one that is busy says nothing."""
CODE = 0
"""The number of the last frame, with the exit code; the others have the number of the stream they go to."""
NONE = b"none"
"""What stands there in place of a code: the client has to do the work."""

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IDENTITY = os.fsencode(f"{__version__}\n{sys.version}\n{sys.prefix}\n{_PACKAGE}")
"""The installation: a daemon answers its own clients only."""
_PRIVATE = 0o700


def place() -> str | None:
    """Give the path of the socket, in a folder that belongs to this user alone; the folder is made.

    Returns:
        The path; None where there can be none.
    """
    if not hasattr(os, "geteuid"):
        return None
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # in a folder of our own
    folder = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or temporary, f"fsrace-lint-{os.geteuid()}")
    try:
        try:  # noqa: SIM105  # as said above
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
    """What a client wants, and what counts in its process."""

    def __init__(self, verb: str, args: list[str]) -> None:
        """Describe this process.

        Args:
            verb: `check`, `keep`, `status` or `stop`.
            args: The arguments of the command `check`.

        Raises:
            OSError: There is no current folder.
        """
        self.identity = IDENTITY
        self.verb, self.args = verb, args
        self.folder = os.getcwd()
        self.encoding, self.errors, self.is_terminal = "utf-8", "strict", False
        self.environment = dict(os.environ)
        if sys.stdout is not None:
            self.encoding, self.errors = sys.stdout.encoding, sys.stdout.errors or self.errors
            self.is_terminal = sys.stdout.isatty()
        try:  # noqa: SIM105  # as said above
            self.environment.setdefault("COLUMNS", str(os.get_terminal_size(1).columns))
        except OSError:  # it is no terminal
            pass

    def pack(self) -> bytes:
        """Give the bytes that go over the wire: no argument and no variable holds a NUL."""
        fixed = (self.verb, self.folder, self.encoding, self.errors, str(int(self.is_terminal)))
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        texts = (*fixed, str(len(self.args)), *self.args, *variables)
        return b"\0".join([self.identity, *map(os.fsencode, texts)])

    @staticmethod
    def unpack(data: bytes) -> Request:
        """Read what `pack` gave.

        Raises:
            ValueError: That is something else.
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
    """Give what is written to a stream as it goes over the wire."""
    return b"%d %d\n%b" % (stream, len(data), data)


def frames(data: bytes) -> list[tuple[int, bytes]]:
    """Read frames.

    Raises:
        ValueError: They are not whole.
    """
    found = []
    while data:
        head, newline, data = data.partition(b"\n")
        stream, length = map(int, head.split(b" "))
        if not newline or not 0 <= length <= len(data):
            raise ValueError("a frame is cut off")
        found.append((stream, data[:length]))
        data = data[length:]
    if not found or found[-1][0] != CODE:
        raise ValueError("there is no end")
    return found
