"""Real processes of a job: started, observed, permitted to continue, and always reaped."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import sys
import threading
import time
import traceback
import warnings
from typing import TYPE_CHECKING, Final

from fsrace_lint.explore import code_places, messages
from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.running import huge_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.explore.identity import Identity
    from fsrace_lint.explore.messages import CallRequest, Ended, Go
    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.scenario import Scenario

_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
_DEATH_OF_PARENT: Final = 1
_MOST_SAID: Final = 32_768
"""The maximum number of bytes of a traceback; a pipe holds more."""


class Hung(Exception):  # noqa: N818  # describes the process
    """A process did not make its next call in time."""


class Gone(Exception):  # noqa: N818  # describes the process
    """A process ended without a message: it was killed, or called `os._exit()`."""


_running = threading.Lock()
_processors: set[int] = set()
"""The processors that may be used while schedules run."""
_living: set[Process] = set()
"""The processes that were started and have not been ended."""
_ends: set[int] = set()
"""The scheduler's ends of all pipes; a child process closes all of them."""


class Process:
    """One process of a job.

    Args:
        pid: Its process id.
        reader: The descriptor for messages from the process.
        writer: The descriptor for messages to the process.
    """

    def __init__(self, pid: int, reader: int, writer: int) -> None:
        self.pid = pid
        self._reader, self._writer = reader, writer
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN | select.POLLHUP)
        _living.add(self)

    def hear(self, timeout: float) -> CallRequest | Ended:
        """Wait for the next message of the process.

        Args:
            timeout: The maximum number of seconds.

        Returns:
            The message.

        Raises:
            Hung: No message arrived in time.
            Gone: The process has ended.
        """
        if not self._poll.poll(timeout * 1000):
            raise Hung
        try:
            return messages.receive(self._reader)
        except messages.Closed:
            raise Gone from None

    def let_through(self, go: Go) -> None:
        """Let the process make its call."""
        with contextlib.suppress(BrokenPipeError):
            messages.send(self._writer, go)

    def signal_stack(self) -> None:
        """Make the process write its stack to its file; only in a traced run."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGUSR1)

    def end(self) -> None:
        """Kill the process and everything that it started, and reap it, unless that was done before."""
        if self not in _living:
            return
        _living.discard(self)
        for target, kill in ((self.pid, os.killpg), (self.pid, os.kill)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(target, _KILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        for end in (self._reader, self._writer):
            _ends.discard(end)
            os.close(end)

    def join(self) -> None:
        """Move the process to the processor of the scheduler."""
        if sys.platform == "linux":
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(self.pid, os.sched_getaffinity(0))


def start(scenario: Scenario, who: Identity, gate: Gate) -> Process:
    """Start one process of a job.

    Args:
        scenario: The scenario to run.
        who: The identity of the process.
        gate: The gate where its calls stop.

    Returns:
        The process.
    """
    from fsrace_lint.explore.process import worker  # noqa: PLC0415  # not importable on Windows

    hear, say = os.pipe(), os.pipe()
    _ends.update((hear[0], say[1]))
    pid = _fork()
    if pid == 0:
        _as_child(lambda: worker.live(scenario, who, gate, say[0], hear[1]))
    os.close(hear[1])
    os.close(say[0])
    return Process(pid, hear[0], say[1])


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
    _ends.add(reader)
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
        _ends.discard(reader)
        os.close(reader)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, _KILL)
        os.waitpid(pid, 0)


def _say(writer: int, error: BaseException) -> None:
    _, trace = code_places.traceback_of(error)
    lines = [*traceback.format_exception_only(type(error), error), "\n", trace]
    os.write(writer, "".join(lines).encode(errors="replace")[:_MOST_SAID] or b"?")


def _heard(reader: int, deadline: float) -> str | None:
    heard = b""
    poll = select.poll()
    poll.register(reader, select.POLLIN | select.POLLHUP)
    while True:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise Hung
        data = os.read(reader, 4096)
        if not data:
            return heard.decode() if heard else None
        heard += data


def _as_child(function: Callable[[], object]) -> None:
    try:
        os.setsid()
        _die_with_parent()
        if sys.platform == "linux" and len(_processors) > 1:
            os.sched_setaffinity(0, _processors - os.sched_getaffinity(0))
        for descriptor in _ends:
            os.close(descriptor)
        hole = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(hole, descriptor)
        function()
    finally:
        os._exit(1)


def _die_with_parent() -> None:
    _prctl(_DEATH_OF_PARENT, _KILL)


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
        for process in list(_living):
            process.end()
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
