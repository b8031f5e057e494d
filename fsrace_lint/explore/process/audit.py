"""What Python does past the intercepted calls: `sys.addaudithook()` reports it before it happens.

The events are those of https://docs.python.org/3/library/audit_events.html. Lookups such as `os.stat()` and
calls on open files have none.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.instrument.watched_tree import descriptor_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.process.gate import Gate

_READING: Final = {
    "os.chdir": ((0, -1),),
    "os.listdir": ((0, -1),),
    "os.scandir": ((0, -1),),
    "os.getxattr": ((0, -1),),
    "os.listxattr": ((0, -1),),
}
"""Events of calls that read a path: the index of each path, and that of its `dir_fd`."""
_WRITING: Final = {
    "os.mkdir": ((0, 2),),
    "os.mkfifo": ((0, -1),),
    "os.mknod": ((0, -1),),
    "os.rmdir": ((0, 1),),
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, -1),),
    "os.utime": ((0, 3),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.chflags": ((0, -1),),
    "os.setxattr": ((0, -1),),
    "os.removexattr": ((0, -1),),
}
"""Events of calls that change a path."""
_PROGRAMS: Final = ("subprocess.Popen", "os.posix_spawn", "os.spawn", "os.system")
_LOCKS: Final = ("fcntl.flock", "fcntl.lockf", "fcntl.ioctl", "os.lockf")
_CONNECTIONS: Final = ("socket.__new__", "socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg")
_REFUSED: Final = ("os.exec", "os.fork", "os.forkpty")
_CREATING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEVICES: Final = ("/dev/", "/proc/")
_MEMORY: Final = "/dev/shm/"  # noqa: S108  # files there are real files
_ACCESS_READ: Final = 1


class Audit:
    """Reports what a process does past the gate, and refuses changes outside of the watched tree.

    Args:
        gate: The gate of the process.
        allow_outside: Whether changes outside of the tree are permitted.
    """

    def __init__(self, gate: Gate, *, allow_outside: bool) -> None:
        self._gate = gate
        self._tree = gate.files.tree
        self._allow_outside = allow_outside
        self._handlers: dict[str, Callable[[str, tuple[Any, ...]], None]] = {
            "open": self._open,
            "mmap.__new__": self._mmap,
            "sqlite3.connect": self._connect,
            "ctypes.dlsym": self._symbol,
            "ctypes.dlsym/handle": self._symbol,
            "import": self._import,
        }
        for events, handler in (
            (_READING, self._paths),
            (_WRITING, self._paths),
            (_PROGRAMS, self._program),
            (_LOCKS, self._lock),
            (_CONNECTIONS, self._socket),
            (_REFUSED, self._refuse),
        ):
            self._handlers.update(dict.fromkeys(events, handler))

    def install(self) -> None:
        """Start to report; this cannot be undone, so only a forked process does it."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        handler = self._handlers.get(event)
        if handler is not None and self._gate.is_begun:
            handler(event, args)

    def _open(self, _: str, args: tuple[Any, ...]) -> None:
        path, mode, flags = args
        if isinstance(path, (str, bytes, os.PathLike)):
            name = "open" if mode is None else f"open[{mode}]"
            self._path(name, [(path, None)], writes=bool(flags & _CREATING))

    def _paths(self, event: str, args: tuple[Any, ...]) -> None:
        reading = event in _READING
        given = [
            (args[path], None if at < 0 or args[at] == -1 else args[at])
            for path, at in (_READING if reading else _WRITING)[event]
        ]
        self._path(event.removeprefix("os."), given, writes=not reading)

    def _path(self, name: str, given: list[tuple[Any, int | None]], *, writes: bool) -> None:
        gate = self._gate
        if gate.is_own_thread() and gate.is_inside and self._is_explained(name, given, writes=writes):
            return
        with gate.aside():
            places = [self._placed(*each) for each in given]
        shown = " -> ".join(self._tree.shown(text) for text, _ in places)
        is_watched = [watched for _, watched in places]
        if writes and (not all(is_watched) or gate.leaves):
            outside = next((text for text, watched in places if not watched), None)
            if outside is not None and self._is_outside(outside):
                self._outside(name, outside)
            return
        if not gate.is_inside and any(is_watched):
            self._unseen(name, shown)

    def _is_explained(self, name: str, given: list[tuple[Any, int | None]], *, writes: bool) -> bool:
        """Return whether an event belongs to the intercepted call, and changes nothing outside."""
        gate = self._gate
        if gate.leaves:
            return not writes
        if gate.is_opaque or not writes or name.startswith("open"):
            return True
        return all(isinstance(path, int) or self._tree.place(path, at) is not None for path, at in given)

    def _placed(self, path: Any, dir_fd: int | None) -> tuple[str, bool]:
        """Return a path without links, and whether it is in the tree."""
        if isinstance(path, int):
            watched = path in self._gate.files.by_descriptor
            return (self._gate.files.shown(path) if watched else f"descriptor {path}"), watched
        text = os.fsdecode(path or ".")
        if dir_fd is not None:
            text = os.path.join(_base(dir_fd), text)
        folder, name = os.path.split(os.path.abspath(text))
        text = os.path.join(os.path.realpath(folder), name)
        if name and (self._gate.leaves or text.startswith(_DEVICES)):
            text = os.path.realpath(text)
        return text, self._tree.place(text) is not None

    @staticmethod
    def _is_outside(path: str) -> bool:
        is_special = path.startswith(("descriptor ", *_DEVICES)) and not path.startswith(_MEMORY)
        return not is_special

    def _outside(self, name: str, path: str) -> None:
        gate = self._gate
        if not self._allow_outside:
            gate.refuse(
                f"process {gate.rank} calls `{name}` on {path} at {gate.spot()}, outside of the temporary"
                " directory: use paths below the first argument of the function, or permit it with"
                " `--allow-outside` (`allow_outside=True`)"
            )
        self._unseen(name, path)

    def _unseen(self, name: str, shown: str) -> None:
        """Make a step of something that is not intercepted, if this is possible."""
        gate = self._gate
        if gate.is_own_thread() and not gate.is_inside:
            gate.bypass(name, shown)
        else:
            gate.note(name, shown, f"at {gate.spot()}")

    def _mmap(self, _: str, args: tuple[Any, ...]) -> None:
        descriptor, _length, access, _offset = args
        gate = self._gate
        if descriptor < 0 or (gate.is_own_thread() and gate.is_inside):
            return
        if descriptor in gate.files.by_descriptor and access == _ACCESS_READ and gate.is_own_thread():
            gate.map(descriptor)
            return
        with gate.aside():
            path = _base(descriptor)
        if self._tree.place(path) is not None:
            self._unseen("mmap", self._tree.shown(path))
        elif access != _ACCESS_READ and self._is_outside(path):
            self._outside("mmap", path)

    def _connect(self, _: str, args: tuple[Any, ...]) -> None:
        text = os.fsdecode(args[0]) if isinstance(args[0], (str, bytes, os.PathLike)) else ""
        path = text.removeprefix("file:").partition("?")[0] if text.startswith("file:") else text
        if path and ":memory:" not in text and "mode=memory" not in text:
            self._path("sqlite3.connect", [(path, None)], writes=True)

    def _symbol(self, _: str, args: tuple[Any, ...]) -> None:
        if self._is_direct():
            self._gate.note("the C function", f"`{args[1]}`", f"which ctypes loads at {self._gate.spot()}")

    def _import(self, _: str, __: tuple[Any, ...]) -> None:
        self._gate.has_imported = True

    def _program(self, event: str, args: tuple[Any, ...]) -> None:
        if self._is_direct():
            self._unseen(event, str(args[0]))

    def _lock(self, event: str, args: tuple[Any, ...]) -> None:
        if self._is_direct() and args[0] in self._gate.files.by_descriptor:
            self._unseen(event, self._gate.files.shown(args[0]))

    def _socket(self, event: str, args: tuple[Any, ...]) -> None:
        if self._is_direct():
            address = "" if event == "socket.__new__" else str(args[1])
            self._unseen(event.replace("__new__", "socket"), address)

    def _refuse(self, event: str, _: tuple[Any, ...]) -> None:
        if self._is_direct():
            gate = self._gate
            gate.refuse(f"cannot explore `{event}()`: process {gate.rank} calls it at {gate.spot()}")

    def _is_direct(self) -> bool:
        """Return whether an event does not belong to an intercepted call."""
        return not (self._gate.is_own_thread() and self._gate.is_inside)


def _base(descriptor: int) -> str:
    try:
        return descriptor_path(descriptor)
    except OSError:
        return f"descriptor {descriptor}"
