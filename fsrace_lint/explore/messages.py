"""What a process and the scheduler say to each other: plain frozen data, sent over pipes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.instrument.model import AdvisoryLock, Answer, CallOutcome, Lookup

if TYPE_CHECKING:
    from collections.abc import Callable


class Meet(msgspec.Struct, frozen=True, tag="meet", array_like=True):
    """Waits for all processes to make the same collective call; each brings something and gets all of it."""

    kind: str
    brought: bytes


class Pause(msgspec.Struct, frozen=True, tag="pause", array_like=True):
    """Sleeps.

    Attributes:
        seconds: As asked for.
        state: What tells that the program has been here before in the same state; "" where it looked at the
        clock.
    """

    seconds: float
    state: str


class CallRequest(msgspec.Struct, frozen=True, tag="request", array_like=True):
    """A process stands before a call and asks to be let through.

    Attributes:
        name: The call, such as "mkdir".
        target: What it is about, as the report shows it.
        where: File and line of the scenario's code.
        mutates: Whether it can change anything.
        lookup: Set where a weak cache may answer.
        lock: The lock that it waits for.
        wait: Set where it must wait for others in another way.
        outcome: What came of the call before.
        state: Where a question is asked twice in a row, what tells that the program is in the same state.
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
    """A process has come to its end.

    Attributes:
        outcome: What came of its last call.
        value: The result, pickled, to be compared; empty where it cannot be.
        shown: The result as the report shows it.
        error: The names of the exception's class and its bases, where it ended by one.
        message: What the exception says.
        trace: Its traceback.
    """

    outcome: CallOutcome | None
    value: bytes = b""
    shown: str = ""
    error: list[str] = []
    message: str = ""
    trace: str = ""


class Stack(msgspec.Struct, frozen=True, tag="stack", array_like=True):
    """Where a process stands."""

    text: str


class Go(msgspec.Struct, frozen=True, array_like=True):
    """Lets a process make its call.

    Attributes:
        now: Seconds on its clock since the start.
        answer: What it is told instead of the truth.
        gathered: What all brought to a collective.
        stack: Asks where it stands; it does not move.
    """

    now: float = 0.0
    answer: Answer | None = None
    gathered: list[bytes] = []
    stack: bool = False


FromProcess = CallRequest | Ended | Stack

# as they were before a process's own were replaced
_read, _write = os.read, os.write
_encode = msgspec.msgpack.Encoder().encode
_decode_message: Callable[[bytes], FromProcess] = msgspec.msgpack.Decoder(FromProcess).decode
_decode_go = msgspec.msgpack.Decoder(Go).decode


class Closed(Exception):  # noqa: N818  # an end of file is no error of either side
    """The other side is gone."""


def send(descriptor: int, message: FromProcess | Go) -> None:
    """Write one message.

    Args:
        descriptor: A pipe's end.
        message: What to say.
    """
    body = _encode(message)
    data = len(body).to_bytes(4, "big") + body
    while data:
        data = data[_write(descriptor, data) :]


def receive(descriptor: int) -> FromProcess:
    """Read what a process says.

    Args:
        descriptor: A pipe's end.

    Returns:
        The message.

    Raises:
        Closed: The process is gone.
    """
    return _decode_message(_body(descriptor))


def receive_go(descriptor: int) -> Go:
    """Read what the scheduler says.

    Args:
        descriptor: A pipe's end.

    Returns:
        The message.

    Raises:
        Closed: The scheduler is gone.
    """
    return _decode_go(_body(descriptor))


def _body(descriptor: int) -> bytes:
    return _exactly(descriptor, int.from_bytes(_exactly(descriptor, 4), "big"))


def _exactly(descriptor: int, size: int) -> bytes:
    data = _read(descriptor, size)
    while len(data) < size:
        more = _read(descriptor, size - len(data))
        if not more:
            raise Closed
        data += more
    return data
