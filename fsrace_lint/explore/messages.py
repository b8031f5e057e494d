"""Messages between a process and the scheduler: plain frozen data, sent over sockets."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import time
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.instrument.model import AdvisoryLock, Answer, CallOutcome, Lookup

if TYPE_CHECKING:
    from collections.abc import Callable


class Meet(msgspec.Struct, frozen=True, tag="meet", array_like=True):
    """Waits until all processes make the same collective call; each contributes a value and receives all.

    Attributes:
        kind: The collective call.
        brought: The pickled contribution of this process.
    """

    kind: str
    brought: bytes


class Pause(msgspec.Struct, frozen=True, tag="pause", array_like=True):
    """Sleeps.

    Attributes:
        seconds: The requested duration.
        state: Identifies the state of the program, so that a repeated state is detected; "" if it has read
            the clock.
    """

    seconds: float
    state: str


class CallRequest(msgspec.Struct, frozen=True, tag="request", array_like=True):
    """A process is about to make a call and requests permission.

    Attributes:
        name: The call, such as "mkdir".
        target: The subject of the call, as the report shows it.
        where: File and line of the scenario's code.
        mutates: Whether the call can change anything.
        lookup: Set if a weak cache can answer the call.
        lock: The lock that the call waits for.
        wait: Set if the call must wait for other processes in another way.
        outcome: The outcome of the previous call.
        state: Identifies the state of the program if it makes the same lookup twice in a row.
    """

    name: str
    target: str
    where: str
    mutates: bool
    lookup: Lookup | None = None
    lock: AdvisoryLock | None = None
    wait: Meet | Pause | None = None
    outcome: CallOutcome | None = None
    state: str = ""


class Ended(msgspec.Struct, frozen=True, tag="ended", array_like=True):
    """A process has finished.

    Attributes:
        outcome: The outcome of its last call.
        value: The pickled result, for comparison; empty if it cannot be pickled.
        shown: The result as the report shows it.
        error: The class names of the exception and its bases, if the process ended with one.
        message: The text of the exception.
        trace: The traceback of the exception.
    """

    outcome: CallOutcome | None
    value: bytes = b""
    shown: str = ""
    error: list[str] = []
    message: str = ""
    trace: str = ""


class Stack(msgspec.Struct, frozen=True, tag="stack", array_like=True):
    """The current stack of a process."""

    text: str


class Go(msgspec.Struct, frozen=True, array_like=True):
    """Lets a process make its call.

    Attributes:
        now: Seconds on the clock of the process since the start.
        answer: The stale answer that the call returns, or None for the true one.
        gathered: The contributions of all processes to a collective.
        stack: Requests the stack of the process, without letting it continue.
    """

    now: float = 0.0
    answer: Answer | None = None
    gathered: list[bytes] = []
    stack: bool = False


FromProcess = CallRequest | Ended | Stack

# the original functions, before a process replaces its own
_read, _write, _monotonic = os.read, os.write, time.monotonic
_encode = msgspec.msgpack.Encoder().encode
_decode_message: Callable[[bytes], FromProcess] = msgspec.msgpack.Decoder(FromProcess).decode
_decode_go = msgspec.msgpack.Decoder(Go).decode


SLICE: Final = 0.05
"""Seconds after which a wait looks for signals."""
_MOST: Final = 65_536


class Closed(Exception):  # noqa: N818  # end of file is not an error
    """The other side of the socket is gone."""


def limit_waiting(channel: int) -> None:
    """Let reading from a socket return after a moment without data, so that `receive` can look around."""
    with socket.socket(fileno=os.dup(channel)) as shared:
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(SLICE * 1e6)))


def send(channel: int, message: FromProcess | Go) -> None:
    """Write one message.

    Args:
        channel: One end of a socket.
        message: The message.
    """
    body = _encode(message)
    data = len(body).to_bytes(4, "big") + body
    while data:
        data = data[_write(channel, data) :]


def receive(channel: int) -> FromProcess:
    """Read a message from a process.

    Args:
        channel: One end of a socket, with `limit_waiting`.

    Returns:
        The message.

    Raises:
        Closed: The process is gone.
        BlockingIOError: No message has begun to arrive in `SLICE` seconds.
    """
    return _decode_message(_body(channel))


def receive_go(channel: int) -> Go:
    """Read a message from the scheduler.

    Args:
        channel: One end of a socket.

    Returns:
        The message.

    Raises:
        Closed: The scheduler is gone.
    """
    return _decode_go(_body(channel))


def _body(channel: int) -> bytes:
    """Read one message; nothing comes after a message before it is answered."""
    data = _some(channel)
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        with contextlib.suppress(BlockingIOError):
            data += _some(channel)
    return data[4:]


def _some(channel: int) -> bytes:
    try:
        data = _read(channel, _MOST)
    except ConnectionResetError:  # the other side had not read everything
        raise Closed from None
    if not data:
        raise Closed
    return data
