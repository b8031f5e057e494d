"""What a scenario may do in part only: start programs, send signals, fork, and take some kinds of locks."""

from __future__ import annotations

import fcntl
import os
import posix
import subprocess
from typing import TYPE_CHECKING, Any

from fsrace_lint.explore.process.clock import FIRST_PID
from fsrace_lint.instrument.opaque_calls import OpaqueCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.process.gate import Gate

_OPEN_FILE_LOCKS = [getattr(fcntl, name) for name in ("F_OFD_SETLK", "F_OFD_SETLKW") if hasattr(fcntl, name)]


class Restrictions(OpaqueCalls):
    """Calls that are waited for, refused, or of which only some are made.

    Args:
        gate: Where they would stop.
        table: What replaces what, without these.
    """

    def __init__(self, gate: Gate, table: dict[Any, Any]) -> None:
        super().__init__(gate, gate.files)
        self._gate = gate
        self._fcntl = table[fcntl.fcntl]

    def replacements(self) -> dict[Any, Any]:
        """Give what replaces what."""
        return {
            subprocess.Popen.__init__: self._popen(),
            posix.kill: self.kill,
            posix.fork: self._refusing("fork"),
            posix.forkpty: self._refusing("forkpty"),
            posix.lockf: self.lockf,
            fcntl.fcntl: self.fcntl,
        }

    def _popen(self) -> Callable[..., None]:
        popen = subprocess.Popen.__init__

        # one call, and where nothing is piped its end is waited for
        def start(process: Any, *args: Any, **options: Any) -> None:
            piped = subprocess.PIPE in (options.get("stdin"), options.get("stdout"), options.get("stderr"))

            def begin(command: Any, *rest: Any, **others: Any) -> None:
                popen(process, command, *rest, **others)
                if not piped:
                    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

            if self._gate.is_active():
                self.opaque(begin, "started and not followed" if piped else "subprocess")(*args, **options)
            else:
                popen(process, *args, **options)

        return start

    def kill(self, pid: int, number: int) -> None:
        """Send a signal: to itself or to what it has started; to others of the job only the empty one."""
        rank = pid - FIRST_PID
        if not self._gate.is_active() or rank < 0:
            posix.kill(pid, number)
        elif rank == self._gate.rank:
            posix.kill(posix.getpid(), number)
        elif number == 0:
            self._gate.note("whether another process is alive is not followed: it is said to be")
        else:
            raise NotImplementedError("signals between the processes of a scenario cannot be explored")

    def _refusing(self, name: str) -> Callable[..., Any]:
        original = getattr(posix, name)

        def refuse() -> Any:
            if not self._gate.is_active():
                return original()
            raise NotImplementedError(f"os.{name} in a scenario: the explorer starts the processes")

        return refuse

    def lockf(self, descriptor: int, command: int, length: int) -> None:
        """Refuse what is not explored, rather than to let it block."""
        if self._is_watched(descriptor):
            raise NotImplementedError("os.lockf cannot be explored; fcntl.lockf and fcntl.flock can")
        posix.lockf(descriptor, command, length)

    def fcntl(self, fd: Any, cmd: int, arg: Any = 0) -> Any:
        """Refuse locks of open files."""
        if cmd in _OPEN_FILE_LOCKS and self._is_watched(fd if isinstance(fd, int) else fd.fileno()):
            raise NotImplementedError("locks of open files (F_OFD_SETLK) cannot be explored; fcntl.flock can")
        return self._fcntl(fd, cmd, arg)
