"""A small process that forks the processes of all runs, so that the scheduler's memory is never copied.

A fork marks the memory of both sides as shared, and each page that either of them writes to afterwards is copied.
The server does nothing but fork, so both it and the scheduler keep their pages.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING, Final, NoReturn

from fsrace_lint.explore.errors import ExploreError

if TYPE_CHECKING:
    from collections.abc import Callable

_COMMAND: Final = struct.Struct("=ci")
_START, _REAP = b"s", b"r"
_PID: Final = struct.Struct("=i")


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
        self._orders: deque[Order] = deque()

    def order(self, rank: int) -> Order:
        """Order a process; the server forks it in the meantime."""
        self._say(_START, rank)
        self._orders.append(Order())
        return self._orders[-1]

    def receive(self, order: Order) -> None:
        """Wait until an ordered process is forked.

        Raises:
            ExploreError: The server has ended.
        """
        while not order.pid:
            data, channels, _, _ = socket.recv_fds(self._channel, _PID.size, 1)
            if len(data) < _PID.size or not channels:
                raise ExploreError("the process that forks the processes of the scenario has ended")
            next_ = self._orders.popleft()
            (next_.pid,), next_.channel = _PID.unpack(data), channels[0]

    def reap(self, pid: int) -> None:
        """Let the server forget a process that has ended."""
        self._say(_REAP, pid)

    def _say(self, command: bytes, number: int) -> None:
        with contextlib.suppress(BrokenPipeError):  # `receive` reports it
            self._channel.sendall(_COMMAND.pack(command, number))

    def close(self) -> None:
        """End the server. All processes that it has forked must have ended."""
        self._channel.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def serve(channel: socket.socket, live: Callable[[int, int], NoReturn]) -> None:
    """Fork processes until the scheduler closes its end of the channel.

    Args:
        channel: The socket that leads to the scheduler.
        live: Runs one process, given its rank and its end of a socket.
    """
    forked: set[int] = set()
    while True:
        data = channel.recv(_COMMAND.size, socket.MSG_WAITALL)
        if len(data) < _COMMAND.size:
            break
        command, number = _COMMAND.unpack(data)
        if command == _REAP:
            os.waitpid(number, 0)
            forked.discard(number)
            continue
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            channel.close()
            ours.close()
            live(number, theirs.detach())
        theirs.close()
        forked.add(pid)
        socket.send_fds(channel, [_PID.pack(pid)], [ours.fileno()])
        ours.close()
    for pid in forked:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
