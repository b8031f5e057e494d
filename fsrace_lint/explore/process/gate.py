"""The end of the line in a process: every call stops here, and is made when the scheduler says so."""

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
"""Where the explorer's own code lies."""
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
HIDDEN = (os.path.dirname(_HERE), *_LIBRARIES, "<")
"""Code that no report points at where there is other code: ours, libraries, and what has no file."""
_PLAIN = (str, bytes, int, float, bool, type(None))


class Gate:
    """Where the calls of one process stop, once it has come to life; until then they go through.

    Args:
        start: The wall clock at the start, the same for every run.
        top: The folder below which everything is watched; calls elsewhere go through.

    Attributes:
        files: What the process has open.
        rank: Which process of the job this is.
        now: Seconds on its clock since the start.
        gathered: What all brought to the collective call that it was let through to.
    """

    waits_for_locks = False
    sorts_names = True

    def __init__(self, start: float, top: str) -> None:
        self.start = start
        self.files = FileTable(WatchedTree(top, f"{top}/root"))
        self.rank = 0
        self.now = 0.0
        self.gathered: list[bytes] = []
        self.looked_at_clock = False
        self._unobserved: list[str] = []
        self._reader, self._writer = -1, -1
        self._inside = True
        self._recorder: Recorder | None = None
        self._asked: tuple[str, str, int | None] | None = None
        self._thread = 0

    def begin(self, reader: int, writer: int, rank: int) -> None:
        """Let calls stop from now on.

        Args:
            reader: Where the scheduler is heard.
            writer: Where it is spoken to.
            rank: Which process of the job this is.
        """
        self._reader, self._writer, self.rank = reader, writer, rank
        self._thread = threading.get_ident()
        self._inside = False

    def finish(self) -> None:
        """Let calls go through again."""
        self._inside = True

    def is_active(self) -> bool:
        """Tell whether calls stop: not those that a call makes itself, nor those of other threads."""
        if self._inside:
            return False
        if threading.get_ident() != self._thread:
            self.note("a thread of its own makes calls, which go through unseen")
            return False
        return True

    def note(self, text: str) -> None:
        """Tell what is not followed, once."""
        if text not in self._unobserved:
            self._unobserved.append(text)

    def wait(
        self, name: str, target: str, act: Callable[[Recorder, Answer | None], T], wait: Meet | Pause
    ) -> T:
        """Stop before what is no call on the filesystem, and waits for others or for time to pass."""
        return self.intercept(
            FilesystemCall(name, target, act, Recorder(self.files.tree), mutates=False), wait
        )

    def intercept(self, call: FilesystemCall[T], wait: Meet | Pause | None = None) -> T:
        """Stop before a call, make it when told to, and remember what came of it."""
        frame = sys._getframe(1)
        state = "" if call.lookup is None else self._asked_again(call, outside(frame, OWN))
        request = CallRequest(
            call.name,
            plain(call.target),
            _where(outside(frame, HIDDEN)),
            call.mutates,
            call.lookup,
            call.lock,
            wait,
            self._taken(),
            state,
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
        """Let what was changed be as old as the process's clock says, and not as the kernel's."""
        moment = int((self.start + self.now) * 1e9)
        posix.utime(target, ns=(moment, moment))

    def _asked_again(self, call: FilesystemCall[T], frame: FrameType | None) -> str:
        """Give the state of a program that asks the same twice in a row, and has not looked at the clock.

        Only questions about paths count: an open file is another one after each read.
        """
        asked, before = (call.name, call.target, frame and frame.f_lasti), self._asked
        self._asked = asked
        return state_of(frame) if asked == before and not self.looked_at_clock else ""

    def end(self, **told: Any) -> NoReturn:
        """Tell the scheduler that this process is done, and end it."""
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
            # what lies between the life of the process and the gate is the scenario's
            last = max(at for at in own if stack[at].name == "live")
            shown = [entry for at, entry in enumerate(stack) if at > last and at not in own]
            messages.send(self._writer, messages.Stack("".join(traceback.format_list(shown))))


def outside(frame: FrameType | None, folders: tuple[str, ...]) -> FrameType | None:
    """Give the innermost frame of code that does not lie in some folders."""
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return frame


def _where(frame: FrameType | None) -> str:
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def state_of(frame: FrameType | None) -> str:
    """Tell where a program stands, so that a state it has been in before is known again.

    Args:
        frame: Where it stands.

    Returns:
        The lines and local values of all its frames, as far as they are plain.
    """
    parts = []
    while frame is not None and not frame.f_code.co_filename.startswith(OWN):
        values = {name: _shallow(value) for name, value in frame.f_locals.items()}
        parts.append(f"{frame.f_code.co_filename}:{frame.f_lasti}:{values}")
        frame = frame.f_back
    return str(hash("|".join(parts)))


def _shallow(value: object) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (list, dict, set)):
        return id(value), len(value)
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict) and not isinstance(value, type):
        return id(value), [(name, each) for name, each in attributes.items() if isinstance(each, _PLAIN)]
    return id(value)
