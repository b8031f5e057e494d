"""Real processes of a job: started, observed, permitted to continue, and always reaped."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Final, NoReturn

from fsrace_lint.explore import messages
from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.messages import CallRequest, Ended, Go, Stack
from fsrace_lint.explore.running import fork_server, huge_pages
from fsrace_lint.explore.running.fork_server import ForkServer
from fsrace_lint.explore.running.interruption import Interrupted, interruption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.scenario import Scenario

_DEATH_OF_PARENT: Final = 1


class Hung(Exception):  # noqa: N818  # describes the process
    """A process did not make its next call in time."""


class Gone(Exception):  # noqa: N818  # describes the process
    """A process ended without a message: it was killed, or called `os._exit()`."""


_running = threading.Lock()
_processors: set[int] = set()
"""The processors that may be used while schedules run."""
_living: set[Process] = set()
"""The processes that were started and have not been ended."""
_servers: dict[int, ForkServer] = {}
"""The servers that fork the processes, by rank."""


class Process:
    """One process of a job.

    Args:
        server: The server that forks it.
    """

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._order = server.order()
        _living.add(self)

    def detach(self) -> None:
        """Forget the process, in another process."""
        if self._order.channel >= 0:
            os.close(self._order.channel)

    @property
    def pid(self) -> int:
        """Its process id."""
        self._server.receive(self._order)
        return self._order.pid

    def join(self) -> None:
        """Wait until the process is forked, and move it to the processor of the scheduler."""
        pid = self.pid
        messages.limit_waiting(self._order.channel)
        if sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(pid, os.sched_getaffinity(0))

    def hear(self, timeout: float) -> CallRequest | Ended | Stack:
        """Wait for the next message of the process.

        Args:
            timeout: The maximum number of seconds.

        Returns:
            The message.

        Raises:
            Hung: No message arrived in time.
            Gone: The process has ended.
            Interrupted: A signal arrived while the process was computing.
        """
        deadline = 0.0
        while True:
            try:
                return messages.receive(self._order.channel)
            except messages.Closed:
                raise Gone from None
            except BlockingIOError:
                interruption.check()
                now = time.monotonic()
                deadline = deadline or now + timeout - messages.SLICE
                if now >= deadline:
                    raise Hung from None

    def let_through(self, go: Go) -> None:
        """Let the process make its call."""
        with contextlib.suppress(BrokenPipeError):
            messages.send(self._order.channel, go)

    def stack(self, timeout: float) -> str:
        """Return the current stack of the process, or "" if it does not answer."""
        self.let_through(Go(stack=True))
        try:
            answer = self.hear(timeout)
        except (Hung, Gone):
            return ""
        return answer.text if isinstance(answer, Stack) else ""

    def end(self) -> None:
        """Kill the process and everything that it started, and wait for its end, unless it has ended."""
        end_all([self])


def end_all(processes: Iterable[Process]) -> None:
    """Kill processes and everything that they started, and wait for the ends of those that are left."""
    ending = [process for process in processes if process in _living]
    for process in ending:
        process._server.end(process.pid)
    for process in ending:
        process._server.wait(process.pid)
        _living.discard(process)
        os.close(process._order.channel)


def start(scenario: Scenario, rank: int, gate: Gate) -> Process:
    """Start one process of a job; it prepares itself in the meantime.

    Args:
        scenario: The scenario to run.
        rank: The rank of the process.
        gate: The gate where its calls stop.

    Returns:
        The process.
    """
    if rank not in _servers:
        _servers[rank] = _serve(scenario, rank, gate)
    return Process(_servers[rank])


def _serve(scenario: Scenario, rank: int, gate: Gate) -> ForkServer:
    from fsrace_lint.explore.process import worker  # noqa: PLC0415  # not importable on Windows

    ours, theirs = socket.socketpair()

    def live(channel: int) -> NoReturn:
        os.setsid()
        _die_with_parent()
        try:
            worker.live(scenario, rank, gate, channel, channel)
        finally:
            os._exit(1)

    def serve() -> None:
        ours.close()
        for server in _servers.values():
            server.detach()
        for process in _living:
            process.detach()
        fork_server.serve(theirs, live)
        os._exit(0)

    pid = _fork()
    if pid == 0:
        _as_child(serve)
    theirs.close()
    return ForkServer(pid, ours)


def aside(function: Callable[[], None], timeout: float) -> str | None:
    """Run a function in a separate process.

    Args:
        function: The function to run.
        timeout: The maximum number of seconds.

    Returns:
        None, or the text of the exception that ended the function.

    Raises:
        Hung: The function did not return in time.
    """
    reader, writer = os.pipe()
    pid = _fork()
    if pid == 0:

        def run() -> None:
            try:
                function()
            except BaseException as error:  # noqa: BLE001  # every exception is an answer
                _say(writer, error)

        _as_child(run)
    os.close(writer)
    try:
        return _heard(reader, time.monotonic() + timeout)
    finally:
        os.close(reader)
        fork_server.end(pid)


def _say(writer: int, error: BaseException) -> None:
    own = os.path.dirname(__file__)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(own)
    ]
    lines = [*traceback.format_exception_only(type(error), error), "\n", *traceback.format_list(frames)]
    os.write(writer, "".join(lines).encode(errors="replace")[:4096] or b"?")


def _heard(reader: int, deadline: float) -> str | None:
    heard = b""
    poll = select.poll()
    poll.register(reader, select.POLLIN | select.POLLHUP)
    while True:
        left = max(0.0, deadline - time.monotonic())
        if not poll.poll(min(messages.SLICE, left) * 1000):
            interruption.check()
            if left <= messages.SLICE:
                raise Hung
            continue
        data = os.read(reader, 4096)
        if not data:
            return heard.decode() if heard else None
        heard += data


def _as_child(function: Callable[[], object]) -> None:
    try:
        interruption.restore()
        os.setsid()
        _die_with_parent()
        if sys.platform == "linux" and len(_processors) > 1:
            os.sched_setaffinity(0, _processors - os.sched_getaffinity(0))
        hole = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(hole, descriptor)
        function()
    finally:
        os._exit(1)


def _die_with_parent() -> None:
    _prctl(_DEATH_OF_PARENT, signal.SIGKILL)


def _load_prctl() -> Callable[[int, int], object]:
    import ctypes  # noqa: PLC0415  # only for Linux

    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return lambda *_: None


_prctl = _load_prctl() if sys.platform == "linux" else lambda *_: None


def _fork() -> int:
    with warnings.catch_warnings():
        # the child has none of the caller's other threads, and does not need them
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Prepare for many processes, and end all of them on exit.

    The scheduler and the processes of its run share one processor, because only one of them runs at a time.
    The processes of the next run prepare themselves on the other processors.

    Raises:
        ExploreError: Another exploration is running in this process.
    """
    if not _running.acquire(blocking=False):
        raise ExploreError("another exploration is already running in this process")
    collects = gc.isenabled()
    gc.disable()
    gc.freeze()
    huge_pages.collapse()
    try:
        with _on_one_processor():
            yield
    finally:
        # closing a server ends its processes too
        with contextlib.suppress(ExploreError, Interrupted):
            end_all(list(_living))
        _living.clear()
        for server in _servers.values():
            server.close()
        _servers.clear()
        gc.unfreeze()
        if collects:
            gc.enable()
        _running.release()


@contextlib.contextmanager
def _on_one_processor() -> Iterator[None]:
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)
    _processors.update(allowed)
    os.sched_setaffinity(0, {_own_processor(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        _processors.clear()


def _own_processor(allowed: set[int]) -> int:
    number = os.getpid() % len(allowed)
    return sorted(allowed)[number]


def refuse_elsewhere() -> None:
    """Reject systems without `os.fork()`.

    Raises:
        ExploreError: This is neither Linux nor macOS.
    """
    if sys.platform not in {"linux", "darwin"}:
        raise ExploreError(f"`prove` needs `os.fork()`, so it runs on Linux and macOS, not on {sys.platform}")
