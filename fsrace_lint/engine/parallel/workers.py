"""Forked worker processes: they share the memory of the parent, and send results as bytes."""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import signal
import struct
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, NoReturn, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from fsrace_lint.engine.parallel.progress import Observer, Phase

Item = TypeVar("Item")
Result = TypeVar("Result")

SHARE: Final = 128 * 1024
"""The bytes of source code that justify one process."""
_SHARES: Final = 8
"""The shares per process: enough to balance the load, and few enough to keep neighboring files together."""
MOST: Final = 512
"""The maximum number of shares. Their numbers fit into the buffer of any pipe: writing never blocks."""
NUMBER: Final = struct.Struct("=H")
_LENGTH: Final = struct.Struct("=Q")
_CHUNK: Final = 1 << 20


class _WorkerAnswer(msgspec.Struct, array_like=True):
    """The answer of a worker for one share: an encoded result per item, or None for an item that failed."""

    share: int
    results: list[bytes | None]
    seconds: dict[str, float]


class Sending(NamedTuple):
    """The encoding of results in a worker, and the decoding in the parent."""

    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes, Any], Any]


def _packed(result: Any) -> bytes:
    return marshal.dumps(msgspec.to_builtins(result))


def _unpacked(data: bytes, kind: Any) -> Any:
    return msgspec.convert(marshal.loads(data), kind)  # noqa: S302  # written by a fork of this process


PLAIN: Final = Sending(msgspec.msgpack.encode, lambda data, kind: msgspec.msgpack.decode(data, type=kind))
"""The encoding for small results."""
NAMES: Final = Sending(_packed, _unpacked)
"""The encoding for results with many names: each name is sent once and decoded to one shared object."""


class Task(Generic[Item, Result]):
    """A function to apply to many independent items."""

    def __init__(
        self,
        work: Callable[[Item], Result],
        kind: Any,
        room: Phase,
        sending: Sending = PLAIN,
        *,
        one_first: bool = False,
    ) -> None:
        """Initialize the task.

        Args:
            work: The function. Its result for an item must not depend on the process or on earlier items.
            kind: The type of the result, which msgspec can encode.
            room: The phase that the work belongs to.
            sending: The encoding of results.
            one_first: Whether the parent processes one item before it forks, so that workers inherit caches
                that each would have to fill otherwise.
        """
        self.work = work
        self.kind = kind
        self.room = room
        self.sending = sending
        self.one_first = one_first

    def each(
        self, items: Sequence[Item], sizes: Sequence[int], jobs: int, observer: Observer
    ) -> list[Result]:
        """Apply the function to all items.

        The parent processes each item that a worker could not process, or whose worker died.

        Args:
            items: The items. Neighbors are processed in the same process.
            sizes: The approximate work per item, in bytes of source code.
            jobs: The maximum number of processes.
            observer: Receives progress and timings.

        Returns:
            The results in the order of the items.
        """
        results: list[Result] = []
        found: dict[int, Result] = {}
        count = min(jobs, sum(sizes) // SHARE, len(items))
        if count > 1 and may_fork():
            if self.one_first:
                results.append(self._done(items[0], observer))
                items, sizes = items[1:], sizes[1:]
            found = self._spread(items, shares_of(sizes, count), count, observer)
        for index, item in enumerate(items):
            results.append(found[index] if index in found else self._done(item, observer))
        return results

    def _done(self, item: Item, observer: Observer) -> Result:
        result = self.work(item)
        observer.step()
        return result

    def _spread(
        self, items: Sequence[Item], shares: Sequence[range], count: int, observer: Observer
    ) -> dict[int, Result]:
        found: dict[int, Result] = {}
        taken: dict[str, float] = {}
        since = time.perf_counter()

        parent = os.getpid()

        def answer(number: int) -> bytes:
            observer.is_copied()
            return self._answer(items, number, shares[number], observer, parent)

        with contextlib.closing(_answers(answer, len(shares), count)) as answers:
            for data in answers:
                said = msgspec.msgpack.decode(data, type=_WorkerAnswer)
                for index, result in zip(shares[said.share], said.results, strict=True):
                    with contextlib.suppress(ValueError, RecursionError):
                        if result is not None:
                            found[index] = self.sending.unpack(result, self.kind)
                            observer.step()
                for room, seconds in said.seconds.items():
                    taken[room] = taken.get(room, 0.0) + seconds
        _book(observer, self.room, taken, time.perf_counter() - since)
        return found

    def _answer(
        self, items: Sequence[Item], number: int, share: range, observer: Observer, parent: int
    ) -> bytes:
        before = observer.seconds()
        results: list[bytes | None] = []
        for index in share:
            if os.getppid() != parent:
                os._exit(1)
            try:
                results.append(self.sending.pack(self.work(items[index])))
            except Exception:  # noqa: BLE001  # such as a lone surrogate or a huge number: the parent repeats the item and raises
                results.append(None)
        taken = {room: spent - before.get(room, 0.0) for room, spent in observer.seconds().items()}
        return msgspec.msgpack.encode(_WorkerAnswer(number, results, taken))


def _book(observer: Observer, room: Phase, taken: dict[str, float], passed: float) -> None:
    """Report the elapsed time, divided by phase in the proportions that the workers measured."""
    total = sum(taken.values())
    parts = {name: spent / total for name, spent in taken.items()} if total else {room: 1.0}
    observer.books({name: passed * part for name, part in parts.items()})


def may_fork() -> bool:
    """Return whether forking is safe: locks held by other threads would stay locked in the child."""
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return False
    try:
        return sum(1 for _ in Path("/proc/self/task").iterdir()) == 1
    except OSError:
        return threading.active_count() == 1


def shares_of(sizes: Sequence[int], count: int) -> list[range]:
    """Partition items into runs of about equal size, and return the runs, largest first."""
    wanted = min(count * _SHARES, MOST)
    limit = sum(sizes) / wanted
    shares: list[range] = []
    start, held, end = 0, 0, limit
    for index, size in enumerate(sizes):
        if index > start and held + size / 2 > end and len(shares) < wanted - 1:
            shares.append(range(start, index))
            start, end = index, max(end + limit, held // limit * limit)
        held += size
    shares.append(range(start, len(sizes)))
    return sorted(shares, key=lambda share: -sum(sizes[index] for index in share))


def _answers(answer: Callable[[int], bytes], shares: int, count: int) -> Generator[bytes, None, None]:
    """Start workers, and yield their answers as they arrive. Shares of workers that die are missing."""
    numbers, writer = os.pipe()
    os.write(writer, b"".join(map(NUMBER.pack, range(shares))))
    os.close(writer)
    workers: dict[int, int] = {}
    try:
        # no interrupt may arrive between two forks, or in a worker before it resets the handler
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            # if no process or memory is left, the workers started so far do the work
            with contextlib.suppress(OSError):
                for _ in range(count):
                    pid, stream = _fork(answer, numbers, [*workers.values()], blocked)
                    workers[pid] = stream
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        yield from _heard([*workers.values()])
    finally:
        os.close(numbers)
        for pid, stream in workers.items():
            os.close(stream)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in workers:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _fork(
    answer: Callable[[int], bytes], numbers: int, others: Sequence[int], blocked: set[Any]
) -> tuple[int, int]:
    """Start a worker, and return its process ID and the descriptor to read its answers from."""
    stream, out = os.pipe()
    try:
        pid = os.fork()
        if pid == 0:
            _serve(answer, numbers, out, [stream, *others], blocked)
    except OSError:
        os.close(stream)
        raise
    finally:
        os.close(out)
    return pid, stream


def _serve(
    answer: Callable[[int], bytes], numbers: int, out: int, others: Sequence[int], blocked: set[Any]
) -> NoReturn:
    """Run as a worker: process shares until none are left, then exit without running the parent's cleanup."""
    code = 1
    try:
        gc.disable()
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for stream in others:
            os.close(stream)
        while number := os.read(numbers, NUMBER.size):
            data = answer(*NUMBER.unpack(number))
            rest = memoryview(_LENGTH.pack(len(data)) + data)
            while rest:
                rest = rest[os.write(out, rest) :]
        code = 0
    finally:
        os._exit(code)


def _heard(streams: Sequence[int]) -> Iterator[bytes]:
    """Yield the length-prefixed messages of workers; incomplete messages are dropped."""
    import selectors  # noqa: PLC0415  # most runs use one process

    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ, bytearray())
        while selector.get_map():
            for key, _ in selector.select():
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                key.data.extend(chunk)
                yield from _whole(key.data)


def _whole(held: bytearray) -> Iterator[bytes]:
    """Remove all complete messages from a buffer, and yield them."""
    while len(held) >= _LENGTH.size:
        end = _LENGTH.size + _LENGTH.unpack_from(held)[0]
        if len(held) < end:
            return
        yield bytes(held[_LENGTH.size : end])
        del held[:end]
