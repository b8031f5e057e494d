"""What Python does not see: programs that are started, and writers in other languages. Each is one step."""

from __future__ import annotations

import os
import posix
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.explore.process.clock import FIRST_PID
from fsrace_lint.explore.process.gate import Calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import Go
    from fsrace_lint.explore.process.places import Recorder

WRITERS: Final = (("sqlite3", "connect", 0), ("torch", "save", 1))
"""Functions that write by themselves where they are given a path, and which argument that is."""
BYPASSES: Final = ("numpy.lib.format", "numpy.lib._format_impl", "numpy.lib.npyio", "numpy.lib._npyio_impl")
"""Modules whose `isfileobj` tells whether a file can be written past Python."""


class OpaqueCalls(Calls):
    """Makes one step of what cannot be looked into."""

    def all(self) -> dict[Any, Any]:
        """Give what replaces what."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            subprocess.run: self._whole(subprocess.run, "subprocess"),
            subprocess.call: self._whole(subprocess.call, "subprocess"),
            subprocess.Popen.__init__: self._popen(),
            posix.kill: self.kill,
            posix.posix_spawn: self._whole(posix.posix_spawn, "posix_spawn"),
            posix.posix_spawnp: self._whole(posix.posix_spawnp, "posix_spawnp"),
            posix.system: self._whole(posix.system, "system"),
            posix.fork: self._refusing("fork"),
            posix.forkpty: self._refusing("forkpty"),
        }
        for module, name, place in WRITERS:
            original = getattr(sys.modules.get(module), name, None)
            if original is not None:
                made[original] = self._writer(original, f"{module}.{name}", place)
        for module in BYPASSES:
            original = getattr(sys.modules.get(module), "isfileobj", None)
            if original is not None:
                made[original] = self._never_past(original)
        return made

    def _writer(self, original: Callable[..., Any], name: str, place: int) -> Callable[..., Any]:
        def write(*args: Any, **options: Any) -> Any:
            given = args[place] if len(args) > place else next(iter(options.values()), None)
            if name == "sqlite3.connect":
                self._gate.note("what is done with a database is not followed, only that it is opened")
            if isinstance(given, (str, bytes, os.PathLike)):
                return self._whole(original, name, os.fsdecode(given))(*args, **options)
            return original(*args, **options)

        return write

    def _never_past(self, original: Callable[[Any], bool]) -> Callable[[Any], bool]:
        return lambda file: self._gate.is_open() and original(file)

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

    def _whole(self, original: Callable[..., Any], name: str, target: str = "") -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if self._gate.is_open():
                return original(*args, **options)
            shown = target or _shown(args[0] if args else options.get("args", ""))

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
    text = " ".join(map(str, command)) if isinstance(command, (list, tuple)) else str(command)
    return text if len(text) <= 60 else text[:57] + "..."
