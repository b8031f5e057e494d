"""What Python does not see: programs that are started, and writers in other languages. Each is one step."""

from __future__ import annotations

import os
import posix
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.explore.process.clock import FIRST_PID

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import Go
    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.explore.process.places import Recorder

WRITERS: Final = (
    ("sqlite3", "connect"),
    ("torch._C", "PyTorchFileWriter"),
    ("torch._C", "PyTorchFileReader"),
)


class Opaque:
    """Makes one step of what cannot be looked into.

    Args:
        gate: Where the steps stop.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def all(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """Give what replaces what."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            subprocess.run: self._whole(subprocess.run, "subprocess"),
            subprocess.call: self._whole(subprocess.call, "subprocess"),
            subprocess.Popen.__init__: self._popen(),
            posix.kill: self.kill,
            posix.system: self._whole(posix.system, "system"),
            posix.fork: self._refusing("fork"),
            posix.forkpty: self._refusing("forkpty"),
        }
        for module, name in WRITERS:
            original = getattr(sys.modules.get(module), name, None)
            if original is not None:
                made[original] = self._whole(original, f"{module}.{name}")
        return made

    def _popen(self) -> Callable[..., None]:
        popen, whole = subprocess.Popen.__init__, self._whole

        # one step, and where nothing is piped its end is waited for
        def start(process: Any, *args: Any, **options: Any) -> None:
            if self._gate.is_open():
                popen(process, *args, **options)
                return
            piped = subprocess.PIPE in (options.get("stdin"), options.get("stdout"), options.get("stderr"))

            def begin(command: Any, *rest: Any, **others: Any) -> None:
                popen(process, command, *rest, **others)
                if not piped:
                    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

            whole(begin, "started and not followed" if piped else "subprocess")(*args, **options)

        return start

    def _whole(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if self._gate.is_open():
                return original(*args, **options)
            shown = _shown(args[0] if args else options.get("args", ""))

            def act(recorder: Recorder, _: Go) -> Any:
                recorder.did_anything(f"{name} {shown}: one step, whatever it does")
                return original(*args, **options)

            return self._gate.step(name, shown, act)

        return call

    def kill(self, pid: int, number: int) -> None:
        """Send a signal: to itself or to what it has started; to others of the job only the empty one."""
        rank = pid - FIRST_PID
        if self._gate.is_open() or rank < 0:
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
            if self._gate.is_open():
                return original()
            raise NotImplementedError(f"os.{name} in a scenario: the explorer starts the processes")

        return refuse


def _shown(command: Any) -> str:
    text = (
        command
        if isinstance(command, str)
        else " ".join(map(str, command))
        if isinstance(command, (list, tuple))
        else str(command)
    )
    return text if len(text) <= 60 else text[:57] + "..."
