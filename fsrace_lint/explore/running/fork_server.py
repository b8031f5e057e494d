"""A small process that forks the processes of one rank, so that the scheduler's memory is never copied.

A fork marks the memory of both sides as shared, and each page that either of them writes to afterwards is
copied. The server does nothing but fork, so both it and the scheduler keep their pages.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING, Final, NoReturn

from fsrace_lint.explore import messages
from fsrace_lint.explore.errors import ExploreError
from fsrace_lint.explore.running.interruption import interruption

if TYPE_CHECKING:
    from collections.abc import Callable

_PID: Final = struct.Struct("=i")
_START: Final = 0
"""Orders a process; any other number is the id of a process to end."""


class Order:
    """A process that was ordered from the server, and may not be forked yet.

    Attributes:
        pid: Its process id, when it is known.
        channel: The descriptor of the scheduler's end of its socket.
    """

    def __init__(self) -> None:
        self.pid = 0
        self.channel = -1


class ForkServer:
    """The scheduler's side of the server.

    Args:
        pid: The process id of the server.
        channel: The socket that leads to it.
    """

    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self._channel = channel
        messages.limit_waiting(channel.fileno())
        self._orders: deque[Order] = deque()
        self._ending: set[int] = set()

    def order(self) -> Order:
        """Order a process; the server forks it in the meantime."""
        self._say(_START)
        self._orders.append(Order())
        return self._orders[-1]

    def receive(self, order: Order) -> None:
        """Wait until an ordered process is forked."""
        while not order.pid:
            self._hear()

    def end(self, pid: int) -> None:
        """Begin to kill a process and everything that it started."""
        self._say(pid)
        self._ending.add(pid)

    def wait(self, pid: int) -> None:
        """Wait until a process that is being killed is gone, with all of its locks and open files."""
        while pid in self._ending:
            self._hear()

    def _hear(self) -> None:
        try:
            data, channels, _, _ = socket.recv_fds(self._channel, _PID.size, 1)
        except BlockingIOError:
            interruption.check()
            return
        if len(data) < _PID.size:
            raise ExploreError("the process that forks the processes of the scenario has ended")
        (pid,) = _PID.unpack(data)
        if channels:
            order = self._orders.popleft()
            order.pid, order.channel = pid, channels[0]
        else:
            self._ending.discard(pid)

    def _say(self, number: int) -> None:
        with contextlib.suppress(BrokenPipeError):  # `_hear` reports it
            self._channel.sendall(_PID.pack(number))

    def detach(self) -> None:
        """Forget the server, in another server."""
        self._channel.close()

    def close(self) -> None:
        """End the server, and all processes that it has forked."""
        self._channel.shutdown(socket.SHUT_RDWR)
        self._channel.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def serve(channel: socket.socket, live: Callable[[int], NoReturn]) -> None:
    """Fork processes until the scheduler closes its end of the channel.

    Args:
        channel: The socket that leads to the scheduler.
        live: Runs one process, given its end of a socket.
    """
    fork = _load_fork()
    forked: set[int] = set()
    while True:
        data = channel.recv(_PID.size, socket.MSG_WAITALL)
        if len(data) < _PID.size:
            break
        (number,) = _PID.unpack(data)
        if number != _START:
            end(number)
            forked.discard(number)
            channel.sendall(data)
            continue
        ours, theirs = socket.socketpair()
        pid = fork()
        if pid == 0:
            channel.close()
            ours.close()
            live(theirs.detach())
        theirs.close()
        forked.add(pid)
        socket.send_fds(channel, [_PID.pack(pid)], [ours.fileno()])
        ours.close()
    for pid in forked:
        end(pid)


def end(pid: int) -> None:
    """Kill a child and everything that it started, and reap it."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _load_fork() -> Callable[[], int]:
    """Return `fork()` without the hooks of Python, which ran when the server was forked.

    The hooks are for other threads, and the server has none. They touch a quarter of all pages.
    """
    import ctypes  # noqa: PLC0415  # only for the server

    try:
        return ctypes.PyDLL(None).fork
    except (OSError, AttributeError):
        return os.fork
