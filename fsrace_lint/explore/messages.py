"""What a process and the scheduler say to each other: plain frozen data, sent over pipes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

Key = tuple[str, int, str]
"""What a call can read or change: ("entry", directory, name), ("listing", directory, ""), ("file", inode,
""), ("lock", inode, ""), or ("world", 0, ""), which is everything. Inodes are numbers as the kernel gives
them in a footprint that a process sends; the scheduler turns them into names that are the same in every
run."""


WORLD: Final[Key] = ("world", 0, "")


class Footprint(msgspec.Struct, frozen=True, array_like=True):
    """What one call read and changed.

    Two calls of different processes can be swapped unless one writes what the other reads or changes.
    `adds` are changes that can be swapped with each other: two names that appear in one directory.
    """

    reads: list[Key] = []
    writes: list[Key] = []
    adds: list[Key] = []


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A lock that was taken or dropped: its kind, inode and owner, and whether others can share it."""

    taken: bool
    kind: str
    inode: int
    owner: str
    shared: bool = False

    def dropped(self) -> Held:
        """Give the same, to be dropped."""
        return Held(False, self.kind, self.inode, self.owner, self.shared)


class CallOutcome(msgspec.Struct, frozen=True, array_like=True):
    """What came of the last call.

    Attributes:
        result: As the report shows it.
        footprint: What it read and changed.
        made: Inodes that came into being.
        seen: Paths that this process has now opened, or changed by this name: weak caches must not lie
            about them. One with a slash at its end stands for the names in a directory only.
        locks: Locks taken and dropped.
        dirtied: Inodes whose data changed, and is not on the disk yet.
        synced: Inodes whose data reached the disk.
        notes: What the explorer could not look into.
        unfollowed: Whether something was done that it did not see at all.
    """

    result: str
    footprint: Footprint
    made: list[int] = []
    seen: list[str] = []
    locks: list[Held] = []
    dirtied: list[int] = []
    synced: list[int] = []
    notes: list[str] = []
    unfollowed: bool = False


class Probe(msgspec.Struct, frozen=True, array_like=True):
    """A question that a weak cache may answer from the past."""

    kind: str
    path: str


class Acquire(msgspec.Struct, frozen=True, tag="acquire", array_like=True):
    """Waits for a lock."""

    kind: str
    inode: int
    owner: str
    shared: bool


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
        probe: Set where a weak cache may answer.
        wait: Set where it must wait for others.
        outcome: What came of the call before.
        state: Where a question is asked twice in a row, what tells that the program is in the same state.
    """

    name: str
    target: str
    where: str
    mutates: bool
    probe: Probe | None = None
    wait: Acquire | Meet | Pause | None = None
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


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a weak cache says: of a file its stat or none, of a directory its names and their types."""

    there: bool
    stat: list[float] = []
    names: list[tuple[str, int]] = []


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


def plain(text: str) -> str:
    """Spell out what is no text, as it comes in names of files."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


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
