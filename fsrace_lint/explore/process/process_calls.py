"""What a process learns of the processes of its job, and what it does to them: process ids and signals."""

from __future__ import annotations

import _socket
import _thread
import errno
import os
import signal
import socket
from typing import TYPE_CHECKING, Any, Final, NoReturn

from fsrace_lint.explore.identity import LAUNCHER
from fsrace_lint.explore.messages import Census
from fsrace_lint.instrument.interception import available
from fsrace_lint.instrument.kernel import posix

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import Living
    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder

# the original functions, before a process replaces its own
_gethostname, _getfqdn = _socket.gethostname, socket.getfqdn
INIT: Final = 1
_SCHEDULING: Final = (
    "sched_getaffinity",
    "sched_setaffinity",
    "sched_getscheduler",
    "sched_setscheduler",
    "sched_getparam",
    "sched_setparam",
)
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)


class ProcessCalls:
    """Calls about processes; those about other processes of the job are intercepted.

    The world of a process consists of the job, its launcher, its own children, and process 1. No other
    process exists, so that the answers are the same in every run.

    Args:
        gate: The gate where the calls stop.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            posix.getpid: self._virtual(posix.getpid, lambda: self._gate.identity.pid),
            _thread.get_native_id: self._virtual(_thread.get_native_id, lambda: self._gate.identity.pid),
            posix.getppid: self._virtual(posix.getppid, lambda: LAUNCHER),
            posix.getpgrp: self._virtual(posix.getpgrp, lambda: LAUNCHER),
            posix.getpgid: self._group(posix.getpgid),
            posix.getsid: self._group(posix.getsid),
            posix.kill: self.kill,
            posix.killpg: self.killpg,
            posix.uname: self.uname,
            _gethostname: self.gethostname,
            _getfqdn: self.getfqdn,
        }
        if hasattr(posix, "pidfd_open"):
            made[posix.pidfd_open] = self.pidfd_open
        return made | {original: self._scheduling(original) for original in available(*_SCHEDULING)}

    def _scheduling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(pid: int, *args: Any) -> Any:
            if not self._gate.is_active() or not pid or is_child(pid):
                return original(pid, *args)
            if pid != self._gate.identity.pid:
                self._refuse(f"`os.{original.__name__}()` of another process")
            return original(0, *args)

        return call

    def _virtual(self, original: Callable[[], Any], value: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: value() if self._gate.is_active() else original()

    def kill(self, pid: int, number: int) -> None:
        """Send a signal; another process of the job accepts only 0 and SIGKILL."""
        if not self._gate.is_active() or is_child(pid):
            posix.kill(pid, number)
        elif pid == self._gate.identity.pid:
            posix.kill(posix.getpid(), number)
        elif number == 0 and pid in (0, -1, INIT, LAUNCHER, -LAUNCHER):
            return
        elif pid in (0, -1, INIT, LAUNCHER) or pid < 0:
            self._refuse("signals to process groups, to the launcher, or to process 1")
        else:
            self._send(pid, number)

    def _send(self, pid: int, number: int) -> None:
        def act(recorder: Recorder, _: Answer | None) -> None:
            self.neighbor(recorder, pid)
            if number not in (0, _KILL):
                self._refuse(f"{signal.Signals(number).name} between the processes of a scenario")

        target = f"{pid} with {signal.Signals(number).name}" if number else f"{pid} with 0"
        self._gate.wait("kill", target, act, Census(pid if number == _KILL else 0))

    def neighbor(self, recorder: Recorder, pid: int) -> Living:
        """Return a living process of the node, or raise `ProcessLookupError`, inside an intercepted call."""
        recorder.reads("process", pid, str(self._gate.identity.node))
        if pid not in self._gate.living:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        recorder.result = "alive"
        return self._gate.living[pid]

    def killpg(self, group: int, number: int) -> None:
        """Send a signal to a process group: refused for that of the job."""
        if not self._gate.is_active() or (group > 0 and is_child(group)):
            return posix.killpg(group, number)
        return self.kill(-group, number)

    def _group(self, original: Callable[[int], int]) -> Callable[[int], int]:
        def group(pid: int) -> int:
            if not self._gate.is_active() or (pid and is_child(pid)):
                return original(pid)
            if pid not in (0, self._gate.identity.pid, LAUNCHER, INIT):
                self._send(pid, 0)
            return INIT if pid == INIT else LAUNCHER

        return group

    def pidfd_open(self, pid: int, flags: int = 0) -> int:
        """Fail as a kernel without this call does, so that callers fall back on `os.kill(pid, 0)`."""
        if not self._gate.is_active() or is_child(pid):
            return posix.pidfd_open(pid, flags)  # type: ignore[attr-defined,no-any-return,unused-ignore]
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    def _refuse(self, what: str) -> NoReturn:
        text = f"cannot explore {what}"
        self._gate.note(text)
        raise NotImplementedError(text)

    def uname(self) -> Any:
        """Return the operating system, with the name of the virtual node."""
        found = posix.uname()
        if not self._gate.is_active() or self._gate.host is None:
            return found
        return posix.uname_result((found[0], self._gate.host, *found[2:]))

    def gethostname(self) -> str:
        """Return the name of the virtual node."""
        is_real = not self._gate.is_active() or self._gate.host is None
        return _gethostname() if is_real else str(self._gate.host)

    def getfqdn(self, name: str = "") -> str:
        """Return the name of the virtual node, without asking a name server."""
        is_own = name in ("", "0.0.0.0", "::", self._gate.host)  # noqa: S104  # compared, not bound
        if is_own and self._gate.is_active() and self._gate.host is not None:
            return self._gate.host
        return _getfqdn(name)


def is_child(pid: int) -> bool:
    """Return whether a real process was started by this process."""
    if pid <= INIT or pid >= LAUNCHER or pid == posix.getpid():
        return False
    try:
        return posix.getsid(pid) == posix.getsid(0) or _is_waitable(pid)
    except OSError:
        return _is_waitable(pid)


def _is_waitable(pid: int) -> bool:
    if not hasattr(posix, "waitid"):
        return False
    try:
        posix.waitid(posix.P_PID, pid, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT)
    except OSError:
        return False
    return True
