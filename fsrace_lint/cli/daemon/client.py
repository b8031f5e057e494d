"""The client of the daemon. It imports little, because its startup takes longer than an answer."""

from __future__ import annotations

import errno
import os
import sys

from fsrace_lint.cli.daemon import wire

TYPE_CHECKING = False  # `typing` takes longer to load than this whole module
if TYPE_CHECKING:
    from _socket import socket
    from typing import TextIO

PATIENCE = 0.1
"""The number of seconds within which an idle daemon starts on a request."""
LIMIT = 30.0
"""The number of seconds within which a daemon answers. Checks of a few files rarely take longer."""
INTERRUPTED = 130
_GONE = (errno.EPIPE, errno.EINVAL)


def check(args: list[str]) -> int | None:
    """Let the daemon check files, and write its output.

    Args:
        args: The arguments of the command `check`.

    Returns:
        The exit status, or None if this process must run the check.
    """
    try:
        answer = call("check", args)
        if answer is None or answer[-1][1] == wire.NONE:
            return None
        *written, (_, code) = answer
        for stream, data in written:
            _write(sys.stdout if stream == 1 else sys.stderr, data)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError:  # this process reports why the output cannot be written
        return None
    return int(code)


def _write(stream: TextIO | None, data: bytes) -> None:
    """Write to a standard stream. A closed pipe (`| head`) is not an error.

    Raises:
        OSError: The stream cannot be written.
    """
    if stream is None:
        return
    try:
        stream.buffer.write(data)
        stream.flush()
    except OSError as error:
        # Python flushes the buffer at exit, and would report the error again
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if error.errno not in _GONE:
            raise


def keep(args: list[str]) -> None:
    """Let a daemon load the project that was just checked. Start a daemon if there is none.

    Args:
        args: The arguments of the command `check`.
    """
    place = wire.place()
    if place is None:
        return
    try:
        request = wire.Request("keep", args).pack()
        try:
            said_to(place, request).close()
        except (FileNotFoundError, ConnectionRefusedError):
            start_daemon(request)
    except OSError:  # the daemon is busy or cannot be started, so the next check runs without it
        pass


def start_daemon(request: bytes) -> None:
    """Start a daemon, which keeps running after this process exits.

    Raises:
        OSError: The daemon cannot be started.
    """
    import subprocess  # noqa: PLC0415  # loaded after the check is done

    process = subprocess.Popen(
        [sys.executable, "-m", "fsrace_lint.cli.daemon"],
        cwd="/",  # Python would import from the current directory
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # this process does not wait for it
    if process.stdin is not None:
        with process.stdin:
            process.stdin.write(request)


def call(verb: str, args: list[str], patience: float = PATIENCE) -> list[tuple[int, bytes]] | None:
    """Send a request to the daemon of this user and installation.

    Args:
        verb: The kind of request.
        args: The arguments of the command `check`.
        patience: The number of seconds within which the daemon must start on the request.

    Returns:
        The frames of the answer. None if there is no daemon, or it is busy.
    """
    place = wire.place()
    if place is None:
        return None
    try:
        connection = said_to(place, wire.Request(verb, args).pack())
        try:
            connection.settimeout(patience)
            return wire.frames(_heard(connection))
        finally:
            connection.close()
    except (OSError, ValueError):
        return None


def _heard(connection: socket) -> bytes:
    """Receive the answer.

    Raises:
        OSError: The answer is late.
        ValueError: The daemon does not answer.
    """
    if connection.recv(len(wire.TAKEN)) != wire.TAKEN:
        raise ValueError("the daemon does not answer")
    connection.settimeout(LIMIT)
    parts = []
    while part := connection.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def said_to(place: str, request: bytes) -> socket:
    """Connect to the daemon, and send a request.

    Raises:
        OSError: There is no daemon, or it does not accept the request.
    """
    from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket  # noqa: PLC0415  # `socket` takes longer to load

    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(PATIENCE)
    try:
        connection.connect(place)
        connection.sendall(request)
        connection.shutdown(SHUT_WR)
    except OSError:
        connection.close()
        raise
    return connection
