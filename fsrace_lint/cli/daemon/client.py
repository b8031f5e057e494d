"""The side that asks. It loads as little as it can: to start takes it longer than to get an answer."""

from __future__ import annotations

import errno
import os
import sys

from fsrace_lint.cli.daemon import wire

TYPE_CHECKING = False  # `typing` takes longer to load than all of this
if TYPE_CHECKING:
    from _socket import socket
    from typing import TextIO

PATIENCE = 0.1
"""The seconds within which a daemon that is not busy begins."""
LIMIT = 30.0
"""The seconds within which it answers: few checks of a few files take longer, whoever does them."""
INTERRUPTED = 130
_GONE = (errno.EPIPE, errno.EINVAL)


def check(args: list[str]) -> int | None:
    """Have a daemon check some files, and write what it answers.

    Args:
        args: The arguments of the command `check`.

    Returns:
        The exit code; None where this process must do it.
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
    except OSError:  # what cannot be written is told by this process
        return None
    return int(code)


def _write(stream: TextIO | None, data: bytes) -> None:
    """Write to a standard stream; a reader that wants no more (`| head`) is no failure.

    Raises:
        OSError: It cannot be written.
    """
    if stream is None:
        return
    try:
        stream.buffer.write(data)
        stream.flush()
    except OSError as error:
        # Python flushes what is left at exit, and would complain again
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if error.errno not in _GONE:
            raise


def keep(args: list[str]) -> None:
    """Have a daemon read the project that was just checked, and start one if there is none.

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
    except OSError:  # it is busy, or cannot be started: the next check does without
        pass


def start_daemon(request: bytes) -> None:
    """Start a daemon, which stays when this process has ended.

    Raises:
        OSError: It cannot be started.
    """
    import subprocess  # noqa: PLC0415  # after the work is done

    process = subprocess.Popen(
        [sys.executable, "-m", "fsrace_lint.cli.daemon"],
        cwd="/",  # not in the folder that is checked, which Python would import from
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # nobody waits for it
    if process.stdin is not None:
        with process.stdin:
            process.stdin.write(request)


def call(verb: str, args: list[str], patience: float = PATIENCE) -> list[tuple[int, bytes]] | None:
    """Ask the daemon of this user and installation.

    Args:
        verb: What is wanted of it.
        args: The arguments of the command `check`.
        patience: The seconds within which it must begin.

    Returns:
        What it says; None if there is none, or it is busy.
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
    """Take the answer.

    Raises:
        OSError: It does not come in time.
        ValueError: There is none.
    """
    if connection.recv(len(wire.TAKEN)) != wire.TAKEN:
        raise ValueError("nobody answers")
    connection.settimeout(LIMIT)
    parts = []
    while part := connection.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def said_to(place: str, request: bytes) -> socket:
    """Connect, and say something.

    Raises:
        OSError: There is no daemon, or it takes nothing.
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
