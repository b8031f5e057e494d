"""The gate of a process: every call stops here, and runs when the scheduler permits it."""

from __future__ import annotations

import os
import posix
import sys
import sysconfig
import threading
import traceback
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fsrace_lint import instrument
from fsrace_lint.explore import messages
from fsrace_lint.explore.messages import CallRequest, Go
from fsrace_lint.instrument.file_table import FileTable
from fsrace_lint.instrument.interception import FilesystemCall
from fsrace_lint.instrument.model import plain
from fsrace_lint.instrument.recorder import Recorder
from fsrace_lint.instrument.watched_tree import WatchedTree

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from fsrace_lint.explore.messages import Meet, Pause
    from fsrace_lint.instrument.model import Answer, CallOutcome

T = TypeVar("T")
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OWN = (_HERE, os.path.dirname(os.path.abspath(instrument.__file__)))
"""The directories of the explorer's own code."""
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
HIDDEN = (os.path.dirname(_HERE), *_LIBRARIES, "<")
"""Code that a report skips when it locates a call: fsrace-lint, libraries, and code without a file."""


class Gate:
    """The place where the calls of one process stop, between `begin()` and `finish()`.

    Args:
        start: The wall clock at the start, the same for every run.
        top: The watched directory; calls outside of it pass.

    Attributes:
        files: The open files of the process.
        rank: The rank of this process.
        now: Seconds on its clock since the start.
        gathered: The contributions of all processes to the current collective call.
    """

    waits_for_locks = False
    sorts_names = True

    def __init__(self, start: float, top: str) -> None:
        self.start = start
        self.files = FileTable(WatchedTree(top, f"{top}/root"))
        self.rank = 0
        self.now = 0.0
        self.gathered: list[bytes] = []
        self._unobserved: list[str] = []
        self._reader, self._writer = -1, -1
        self._inside = True
        self._recorder: Recorder | None = None
        self._thread = 0

    def begin(self, reader: int, writer: int, rank: int) -> None:
        """Start to stop calls.

        Args:
            reader: The descriptor for messages from the scheduler.
            writer: The descriptor for messages to the scheduler.
            rank: The rank of this process.
        """
        self._reader, self._writer, self.rank = reader, writer, rank
        self._thread = threading.get_ident()
        self._inside = False

    def finish(self) -> None:
        """Let calls pass again."""
        self._inside = True

    def is_active(self) -> bool:
        """Return whether calls stop: not those inside another call, nor those of other threads."""
        if self._inside:
            return False
        if threading.get_ident() != self._thread:
            self.note("calls of other threads are not controlled")
            return False
        return True

    def note(self, text: str) -> None:
        """Record something that is not observed, once."""
        if text not in self._unobserved:
            self._unobserved.append(text)

    def wait(
        self, name: str, target: str, act: Callable[[Recorder, Answer | None], T], wait: Meet | Pause
    ) -> T:
        """Stop before an operation other than a filesystem call, which waits for processes or for time."""
        return self.intercept(
            FilesystemCall(name, target, act, Recorder(self.files.tree), mutates=False), wait
        )

    def intercept(self, call: FilesystemCall[T], wait: Meet | Pause | None = None) -> T:
        """Stop before a call, make it when permitted, and keep its outcome."""
        frame = sys._getframe(1)
        request = CallRequest(
            call.name,
            plain(call.target),
            _where(outside(frame, HIDDEN)),
            call.mutates,
            call.lookup,
            call.lock,
            wait,
            self._taken(),
            _site(frame),
        )
        messages.send(self._writer, request)
        go = self._heard()
        self._inside = True
        try:
            result = call.run(go.answer)
            for changed in call.recorder.modified:
                self._stamp(changed)
        finally:
            self._inside = False
            self._recorder = call.recorder
        return result

    def _stamp(self, target: str | int) -> None:
        """Set the timestamps of a changed file to the clock of the process instead of that of the kernel."""
        moment = int((self.start + self.now) * 1e9)
        posix.utime(target, ns=(moment, moment))

    def end(self, **told: Any) -> NoReturn:
        """Report the end of this process to the scheduler, and exit."""
        messages.send(self._writer, messages.Ended(self._taken(), **told))
        posix._exit(0)

    def _taken(self) -> CallOutcome | None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return None
        recorder.unobserved += self._unobserved
        return recorder.outcome()

    def _heard(self) -> Go:
        while True:
            try:
                go = messages.receive_go(self._reader)
            except messages.Closed:
                posix._exit(1)
            if not go.stack:
                self.now, self.gathered = go.now, go.gathered
                return go
            stack = traceback.extract_stack()
            own = [at for at, entry in enumerate(stack) if entry.filename.startswith(OWN)]
            # the frames between `live()` and the gate belong to the scenario
            last = max(at for at in own if stack[at].name == "live")
            shown = [entry for at, entry in enumerate(stack) if at > last and at not in own]
            messages.send(self._writer, messages.Stack("".join(traceback.format_list(shown))))


def outside(frame: FrameType | None, folders: tuple[str, ...]) -> FrameType | None:
    """Return the innermost frame whose code is not in one of some directories."""
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return frame


def _where(frame: FrameType | None) -> str:
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _site(frame: FrameType | None) -> int:
    """Return what identifies the position of a program in all of its frames."""
    site = 0
    while frame is not None:
        code = frame.f_code
        site = hash((site, code.co_filename, code.co_firstlineno, frame.f_lasti))
        frame = frame.f_back
    return site
