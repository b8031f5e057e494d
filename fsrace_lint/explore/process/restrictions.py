"""Operations that a scenario can use only in part: programs, `fork()`, and some kinds of locks."""

from __future__ import annotations

import _posixsubprocess
import _thread
import fcntl
import os
import select
import subprocess
from typing import TYPE_CHECKING, Any, NoReturn

from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.opaque_calls import OpaqueCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.process.gate import Gate

_THREADS = [
    getattr(_thread, name) for name in ("start_new_thread", "start_joinable_thread") if hasattr(_thread, name)
]
_OPEN_FILE_LOCKS = [getattr(fcntl, name) for name in ("F_OFD_SETLK", "F_OFD_SETLKW") if hasattr(fcntl, name)]


class Restrictions(OpaqueCalls):
    """Calls that are waited for, refused, or only partly supported.

    Args:
        gate: The gate where the calls would stop.
        table: The replacements of all other calls.
    """

    def __init__(self, gate: Gate, table: dict[Any, Any]) -> None:
        super().__init__(gate, gate.files)
        self._gate = gate
        self._fcntl = table[fcntl.fcntl]

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        return {
            subprocess.Popen.__init__: self._popen(),
            **{start: self._starting(start) for start in _THREADS},
            **{wait: self._waiting(wait) for wait in (select.select, select.poll)},
            _posixsubprocess.fork_exec: self._forking(_posixsubprocess.fork_exec),
            posix.fork: self._refusing("fork"),
            posix.forkpty: self._refusing("forkpty"),
            posix.lockf: self.lockf,
            fcntl.fcntl: self.fcntl,
        }

    def _popen(self) -> Callable[..., None]:
        popen = subprocess.Popen.__init__

        # one call; without pipes, it waits for the end of the program
        def start(process: Any, *args: Any, **options: Any) -> None:
            piped = subprocess.PIPE in (options.get("stdin"), options.get("stdout"), options.get("stderr"))

            def begin(command: Any, *rest: Any, **others: Any) -> None:
                popen(process, command, *rest, **others)
                if not piped:
                    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

            if self._gate.is_active():
                self.opaque(begin, "subprocess with pipes" if piped else "subprocess")(*args, **options)
            else:
                popen(process, *args, **options)

        return start

    def _starting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def start(*args: Any, **options: Any) -> Any:
            if self._gate.is_begun and not (self._gate.is_own_thread() and self._gate.is_inside):
                self._gate.has_threads = True
                self._gate.note("the thread that starts", place=f"at {self._gate.spot()}")
            return original(*args, **options)

        return start

    def _waiting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any) -> Any:
            if self._gate.is_active():
                self._gate.note(f"select.{original.__name__}", place=f"at {self._gate.spot()}")
            return original(*args)

        return wait

    def _forking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def fork_exec(*args: Any) -> Any:
            if self._gate.is_active():
                self._refuse("cannot start Python processes in a scenario: the explorer starts the processes")
            return original(*args)

        return fork_exec

    def _refusing(self, name: str) -> Callable[..., Any]:
        original = getattr(posix, name)

        def refuse() -> Any:
            if self._gate.is_active():
                self._refuse(f"cannot use `os.{name}()` in a scenario: the explorer starts the processes")
            return original()

        return refuse

    def _refuse(self, text: str) -> NoReturn:
        """Raise an error, and note it: if the program ignores the error, not everything was explored."""
        self._gate.note(text)
        raise NotImplementedError(text)

    def lockf(self, descriptor: int, command: int, length: int) -> None:
        """Refuse `os.lockf()` on a watched file, because it is not explored and could block."""
        if self._is_watched(descriptor):
            self._refuse("cannot explore `os.lockf()`: use `fcntl.lockf()` or `fcntl.flock()`")
        posix.lockf(descriptor, command, length)

    def fcntl(self, fd: Any, cmd: int, arg: Any = 0) -> Any:
        """Refuse open file description locks."""
        if cmd in _OPEN_FILE_LOCKS and self._is_watched(fd if isinstance(fd, int) else fd.fileno()):
            self._refuse("cannot explore open file description locks (`F_OFD_SETLK`): use `fcntl.flock()`")
        return self._fcntl(fd, cmd, arg)
