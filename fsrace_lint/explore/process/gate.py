"""The end of the line in a process: every call stops here, and is made when the scheduler says so."""

from __future__ import annotations

import os
import posix
import sys
import sysconfig
import threading
import traceback
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fsrace_lint.explore import messages
from fsrace_lint.explore.messages import CallRequest, Go, plain
from fsrace_lint.explore.process.places import Recorder, descriptor_path

if TYPE_CHECKING:
    import weakref
    from collections.abc import Callable
    from types import FrameType

    from fsrace_lint.explore.messages import Acquire, CallOutcome, Held, Meet, Pause, Probe

    Path = str | bytes | int | os.PathLike[str] | os.PathLike[bytes] | None

T = TypeVar("T")
OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Where the explorer's own code lies."""
_PACKAGE = os.path.dirname(OWN)
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
HIDDEN = (_PACKAGE, *_LIBRARIES, "<")
"""Code that no report points at where there is other code: ours, libraries, and what has no file."""
_PLAIN = (str, bytes, int, float, bool, type(None))


class Open:
    """An open file: what its descriptors share.

    Attributes:
        number: Tells it from the others of this process.
        flock: The lock that it holds, or None.
        descriptors: How many there are.
        is_nameless: Whether it was made without a name (`O_TMPFILE`).
    """

    def __init__(self, number: int, *, is_nameless: bool = False) -> None:
        self.number = number
        self.is_nameless = is_nameless
        self.flock: Held | None = None
        self.descriptors = 1


class Gate:
    """Where the calls of one process stop, once it has come to life; until then they go through.

    Args:
        start: The wall clock at the start, the same for every run.
    """

    def __init__(self, start: float) -> None:
        self.start = start
        self.top = ""
        self.rank = 0
        self.now = 0.0
        self.looked_at_clock = False
        self.files: dict[int, Open] = {}
        self.streams: list[weakref.ref[Any]] = []
        self.record_locks: dict[int, Held] = {}
        self.unfollowed: list[str] = []
        self._reader, self._writer = -1, -1
        self._below = ""
        self._inside = True
        self._recorder: Recorder | None = None
        self._asked: tuple[str, str, int | None] | None = None
        self._thread = 0
        self._opened = 0

    def begin(self, reader: int, writer: int, top: str, rank: int) -> None:
        """Let calls stop from now on.

        Args:
            reader: Where the scheduler is heard.
            writer: Where it is spoken to.
            top: The folder below which everything is watched; calls elsewhere go through.
            rank: Which process of the job this is.
        """
        self._reader, self._writer = reader, writer
        self.top, self._below, self.rank = top, top + "/", rank
        self._thread = threading.get_ident()
        self._inside = False

    def finish(self) -> None:
        """Let calls go through again."""
        self._inside = True

    def stamp(self, target: str | int) -> None:
        """Let what was changed be as old as the process's clock says, and not as the kernel's."""
        moment = int((self.start + self.now) * 1e9)
        posix.utime(target, ns=(moment, moment))

    def is_open(self) -> bool:
        """Tell whether calls go through: those that a call makes itself, and those of other threads."""
        if self._inside:
            return True
        if threading.get_ident() != self._thread:
            self.note("a thread of its own makes calls, which go through unseen")
            return True
        return False

    def note(self, text: str) -> None:
        """Tell what is not followed, once."""
        if text not in self.unfollowed:
            self.unfollowed.append(text)

    def place(self, path: Path, dir_fd: int | None = None) -> str | None:
        """Give the absolute path where a call is to be watched.

        Args:
            path: As the call was given it.
            dir_fd: What it is relative to, where not to the working directory.

        Returns:
            A path below the top that may hold links and dots, or None.
        """
        return None if self.is_open() else self.now_at(path, dir_fd)

    def now_at(self, path: Path, dir_fd: int | None = None) -> str | None:
        """Give the same at the moment of the call: what a path is relative to may have been renamed."""
        if path is None or isinstance(path, int):
            return None
        text = os.fsdecode(path)
        if "\0" in text:
            return None
        if not text.startswith("/"):
            try:
                base = posix.getcwd() if dir_fd is None else descriptor_path(dir_fd)
            except OSError:
                return None
            text = f"{base}/{text}" if text else ""
        if ".." in text and not text.startswith(self._below):
            text = os.path.normpath(text)
        if text.startswith(self._below) or text == self.top:
            return text
        return None

    def opened(self, descriptor: int, *, is_nameless: bool = False) -> None:
        """Remember an open file."""
        self._opened += 1
        self.files[descriptor] = Open(self._opened, is_nameless=is_nameless)

    def share(self, descriptor: int, new: int) -> None:
        """Remember that an open file has another descriptor."""
        if descriptor in self.files and new != descriptor:
            self.files[new] = self.files[descriptor]
            self.files[new].descriptors += 1

    def watches(self, descriptor: int) -> bool:
        """Tell whether calls on a descriptor are watched."""
        return not self.is_open() and descriptor in self.files

    def descriptor_place(self, descriptor: int) -> str | None:
        """Give the path of an open directory, where it is watched."""
        return descriptor_path(descriptor) if self.watches(descriptor) else None

    def name_of(self, descriptor: int) -> str:
        """Give the path of an open file as reports show it."""
        if self.files[descriptor].is_nameless:
            return "a file without a name"
        try:
            return self.shown(descriptor_path(descriptor))
        except OSError:
            return f"descriptor {descriptor}"

    def shown(self, path: str) -> str:
        """Give a path as reports show it: relative to the scenario's root."""
        home = self._below + "root"
        if path == home:
            return "."
        return (
            path.removeprefix(home + "/") if path.startswith(home + "/") else path.removeprefix(self._below)
        )

    def step(
        self,
        name: str,
        target: str,
        act: Callable[[Recorder, Go], T],
        *,
        mutates: bool = True,
        probe: Probe | None = None,
        wait: Acquire | Meet | Pause | None = None,
    ) -> T:
        """Stop before a call, make it when told to, and remember what came of it.

        Args:
            name: The call.
            target: What it is about.
            act: Makes the call, and notes what it reads and changes.
            mutates: Whether it can change anything.
            probe: Set where a weak cache may answer.
            wait: Set where it must wait for others.

        Returns:
            What the call gives.
        """
        caller = sys._getframe(1)
        state = "" if probe is None else self._asked_again(name, target, caller.f_back)
        where, outcome = self._where(caller), self._taken()
        request = CallRequest(name, plain(target), where, mutates, probe, wait, outcome, state)
        messages.send(self._writer, request)
        go = self._heard()
        recorder = Recorder(self.top, self.now_at)
        self._inside = True
        try:
            result = act(recorder, go)
        except OSError as error:
            recorder.result = type(error).__name__
            raise
        finally:
            self._inside = False
            self._recorder = recorder
        return result

    def _asked_again(self, name: str, target: str, frame: FrameType | None) -> str:
        """Give the state of a program that asks the same twice in a row, and has not looked at the clock.

        Only questions about paths count: an open file is another one after each read.
        """
        asked, before = (name, target, frame and frame.f_lasti), self._asked
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
        recorder.notes += self.unfollowed
        recorder.unfollowed = bool(self.unfollowed)
        return recorder.outcome()

    def _heard(self) -> Go:
        while True:
            try:
                go = messages.receive_go(self._reader)
            except messages.Closed:
                posix._exit(1)
            if not go.stack:
                self.now = go.now
                return go
            stack = traceback.extract_stack()
            own = [at for at, entry in enumerate(stack) if entry.filename.startswith(OWN)]
            # what lies between the life of the process and the gate is the scenario's
            last = max(at for at in own if stack[at].name == "live")
            shown = [entry for at, entry in enumerate(stack) if at > last and at not in own]
            messages.send(self._writer, messages.Stack("".join(traceback.format_list(shown))))

    def _where(self, frame: FrameType | None) -> str:
        frame = users(frame)
        return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Calls:
    """Calls of one kind, each stopped at the gate.

    Args:
        gate: Where they stop.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def all(self) -> dict[Any, Any]:
        """Give what replaces what."""
        raise NotImplementedError


def users(frame: FrameType | None) -> FrameType | None:
    """Give the innermost frame of the scenario's own code."""
    while frame is not None and frame.f_code.co_filename.startswith(HIDDEN):
        frame = frame.f_back
    return frame


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
