"""The gate of a process: every call stops here, and runs when the scheduler permits it."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fsrace_lint.explore import code_places, messages
from fsrace_lint.explore.code_places import OWN, is_thin
from fsrace_lint.explore.faults import Faults
from fsrace_lint.explore.identity import Identity
from fsrace_lint.explore.messages import CallRequest, Go, Unseen
from fsrace_lint.instrument.file_table import FileTable
from fsrace_lint.instrument.interception import FilesystemCall
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import plain
from fsrace_lint.instrument.recorder import Recorder
from fsrace_lint.instrument.watched_tree import WatchedTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from fsrace_lint.explore.code_places import Frame
    from fsrace_lint.explore.messages import Census, Living, Meet, Pause
    from fsrace_lint.instrument.model import Answer, CallOutcome
    from fsrace_lint.instrument.tree_watch import TreeWatch

T = TypeVar("T")


class Gate:
    """The place where the calls of one process stop, between `begin()` and `finish()`.

    Args:
        start: The wall clock at the start, the same for every run.
        top: The watched directory; calls outside of it pass.
        watch: Reports changes of the watched directory.

    Attributes:
        files: The open files of the process.
        rank: The rank of this process.
        now: Seconds on its clock since the start.
        rescan: Replaces the functions of modules that were loaded since the last time.
        captured: Descriptions of the objects that keep an original function.
        has_imported: Whether the process has imported a module since its last call.
        has_threads: Whether the process has started a thread.
        is_inside: Whether an intercepted call is running, or the explorer itself.
        gathered: The contributions of all processes to the current collective call.
        is_traced: Whether each request includes the stack.
        identity: The identity of this process.
        started: Seconds between the start of the run and the start of this process.
        host: The name of its node; None for the real name.
        living: The living processes of the node by process id, in a call that asks for them.
    """

    waits_for_locks = False
    sorts_names = True
    splits_data = True
    excludes_writers = True

    def __init__(self, start: float, top: str, watch: TreeWatch) -> None:
        self.start = start
        self.rescan: Callable[[], None] = lambda: None
        self._watch = watch
        self.files = FileTable(WatchedTree(top, f"{top}/root"))
        self.faults = Faults()
        self.rank = 0
        self.now = 0.0
        self.gathered: list[bytes] = []
        self.is_traced = False
        self.identity = Identity()
        self.started = 0.0
        self.host: str | None = None
        self.living: dict[int, Living] = {}
        self.captured: list[str] = []
        self.has_imported = False
        self.has_threads = False
        self.is_inside = True
        self._unseen: list[Unseen] = []
        self._reported: set[tuple[str, str]] = set()
        self._is_excused = True
        self._call: FilesystemCall[Any] | None = None
        self._reader, self._writer = -1, -1
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
        for each in self.captured:
            self.note("an original function that is stored in", each, "since before the start")
        self.is_inside = False
        self._is_excused = False

    def finish(self) -> None:
        """Let calls pass again."""
        with self.aside():
            self._look_for_unseen(is_end=True)
        self.is_inside = True

    @property
    def is_begun(self) -> bool:
        """Whether calls stop in this process."""
        return bool(self._thread)

    def is_own_thread(self) -> bool:
        """Return whether this is the thread whose calls stop."""
        return threading.get_ident() == self._thread

    def is_active(self) -> bool:
        """Return whether calls stop: not those inside another call, nor those of other threads."""
        if threading.get_ident() != self._thread:
            if self._thread:
                self.note("calls of other threads are not controlled")
            return False
        return not self.is_inside

    @property
    def is_opaque(self) -> bool:
        """Whether the current call can do anything."""
        return self._call is not None and self._call.recorder.is_opaque

    @property
    def leaves(self) -> bool:
        """Whether the current call follows a link that leads out of the tree."""
        return self._call is not None and self._call.recorder.leaves

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Let the explorer make calls of its own."""
        if not self.is_own_thread():
            yield
            return
        before, self.is_inside = self.is_inside, True
        try:
            yield
        finally:
            self.is_inside = before

    def note(self, what: str, target: str = "", place: str = "") -> None:
        """Record something that is not controlled, once for each place.

        Args:
            what: The call, or a whole sentence if it has no place.
            target: The subject of the call.
            place: Where it happened.
        """
        if (what, place) not in self._reported:
            self._reported.add((what, place))
            self._unseen.append(Unseen(what, plain(target), place))

    def spot(self) -> str:
        """Return the file and line of the current code, of the scenario or of a library that it uses."""
        path, _, line = _where(sys._getframe(1)).rpartition(":")
        return f"{code_places.file_name(path)}:{line}" if path else "?"

    def refuse(self, text: str) -> NoReturn:
        """End the exploration, because this process is about to do what must not happen."""
        messages.send(self._writer, messages.Ended(None, refused=text))
        posix._exit(0)

    def bypass(self, name: str, target: str) -> None:
        """Stop before something that is not intercepted; it happens as soon as this returns."""

        def act(recorder: Recorder, _: Answer | None) -> None:
            recorder.happens_unseen()

        self.intercept(FilesystemCall(name, target, act, Recorder(self.files.tree)))
        self._is_excused = True

    def map(self, descriptor: int) -> None:
        """Stop before a file is mapped into memory for reading."""

        def act(recorder: Recorder, _: Answer | None) -> None:
            inode = posix.fstat(descriptor).st_ino
            recorder.reads("file", inode)
            recorder.mapped.append(inode)

        target = self.files.shown(descriptor)
        self.intercept(FilesystemCall("mmap", target, act, Recorder(self.files.tree), mutates=False))

    def _look_for_unseen(self, *, is_end: bool = False) -> None:
        """Note what has happened in the tree since the last call, by no call that was intercepted."""
        happened = self._watch.happened(self.files.tree.top)
        if not happened:
            self._is_excused = False
            return
        place = "before the end" if is_end else f"before {self.spot()}"
        kinds: dict[str, str] = {}
        for word, path in () if self._is_excused or self.has_threads else happened:
            kinds.setdefault(word, self.files.tree.shown(path))
        self._is_excused = False
        for word, shown in kinds.items():
            self.note(f"C, C++, or Rust code {word}", shown, place)

    def wait(
        self, name: str, target: str, act: Callable[[Recorder, Answer | None], T], wait: Meet | Pause | Census
    ) -> T:
        """Stop before an operation other than a filesystem call, which is about processes or time."""
        return self.intercept(
            FilesystemCall(name, target, act, Recorder(self.files.tree), mutates=False), wait
        )

    def intercept(self, call: FilesystemCall[T], wait: Meet | Pause | Census | None = None) -> T:
        """Stop before a call, make it when permitted, and keep its outcome."""
        with self.aside():
            self._look_for_unseen()
            if self.has_imported:
                self.has_imported = False
                self.rescan()
        frame = sys._getframe(1)
        request = CallRequest(
            call.name,
            plain(call.target),
            _where(frame),
            call.mutates,
            call.lookup,
            call.lock,
            wait,
            self._taken(),
            _site(frame),
            self._taken_notes(),
            self.faults.of(call),
            plain(call.creates),
            self._stack(frame) if self.is_traced else [],
        )
        messages.send(self._writer, request)
        go = self._heard()
        if go.fault == "EINTR" and not call.is_rest:
            return self._interrupted(call, wait)
        self.is_inside, self._call = True, call
        try:
            result = call.run(go.answer, go.fault)
            for changed in call.recorder.modified:
                self._stamp(changed)
        except OSError as error:
            if go.fault:
                self.faults.note(error)
            raise
        finally:
            self._watch.settle(self.files.tree.top)
            if call.recorder.is_opaque:
                self.note(call.name, call.target, f"at {self.spot()}, one step, whatever it does")
            self.is_inside, self._call = False, None
            self._recorder = call.recorder
        return result

    def _interrupted(self, call: FilesystemCall[T], wait: Meet | Pause | Census | None) -> T:
        """Run the handlers of signals, and make the call again unless one of them raises: PEP 475."""
        call.recorder.result = "EINTR (injected)"
        self._recorder = call.recorder
        self.faults.interrupt()
        return self.intercept(dataclasses.replace(call, recorder=Recorder(self.files.tree)), wait)

    def _stamp(self, target: str | int) -> None:
        """Set the timestamps of a changed file to the clock of the process instead of that of the kernel."""
        moment = int((self.start + self.now) * 1e9)
        posix.utime(target, ns=(moment, moment))

    def end(self, *, lingers: bool, **told: Any) -> NoReturn:
        """Report the end of this process to the scheduler, and exit.

        Args:
            lingers: Whether the process stays in /proc until the scheduler ends it.
            told: What the process reports.
        """
        messages.send(self._writer, messages.Ended(self._taken(), unseen=self._taken_notes(), **told))
        while lingers:
            self._heard()
        posix._exit(0)

    def _taken(self) -> CallOutcome | None:
        recorder, self._recorder = self._recorder, None
        return None if recorder is None else recorder.outcome()

    def _taken_notes(self) -> list[Unseen]:
        taken, self._unseen = self._unseen, []
        return taken

    def _heard(self) -> Go:
        try:
            go = messages.receive_go(self._reader)
        except messages.Closed:
            posix._exit(1)
        self.now, self.gathered = go.now, go.gathered
        self.living = {each.pid: each for each in go.living}
        return go

    def _stack(self, frame: FrameType | None) -> list[Frame]:
        """Return the frames of the program, innermost first."""
        found: list[Frame] = []
        while frame is not None:
            code = frame.f_code
            if not code.co_filename.startswith(OWN):
                found.append((plain(code.co_filename), frame.f_lineno or 0, plain(code.co_name)))
            elif code.co_name == "live":
                break  # the frames of the process itself
            frame = frame.f_back
        return found


def outside(frame: FrameType | None, folders: tuple[str, ...]) -> FrameType | None:
    """Return the innermost frame whose code is not in one of some directories."""
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return frame


def _where(frame: FrameType | None) -> str:
    """Return the file and line of the innermost frame that is no thin wrapper, or of the innermost frame."""
    found = None
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(OWN):
            if code.co_name == "live":
                break  # the frames of the process itself
        elif not is_thin(code.co_filename):
            found = frame
            break
        else:
            found = found or frame
        frame = frame.f_back
    return "" if found is None else f"{plain(found.f_code.co_filename)}:{found.f_lineno}"


def _site(frame: FrameType | None) -> int:
    """Return what identifies the position of a program in all of its frames."""
    site = 0
    while frame is not None:
        code = frame.f_code
        site = hash((site, code.co_filename, code.co_firstlineno, frame.f_lasti))
        frame = frame.f_back
    return site
