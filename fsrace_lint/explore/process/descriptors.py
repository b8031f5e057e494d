"""The calls of `os` and `fcntl` on open files."""

from __future__ import annotations

import fcntl
import os
import posix
import stat
import struct
from typing import TYPE_CHECKING, Any

from fsrace_lint.explore.messages import Acquire, Held
from fsrace_lint.explore.process.places import descriptor_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import Go
    from fsrace_lint.explore.process.gate import Gate, Path
    from fsrace_lint.explore.process.places import Recorder

_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_EXCL", "O_TRUNC", "O_APPEND", "O_DIRECTORY")
_ATTRIBUTES = ("fchmod", "fchown")
# as they were before a process's own were replaced
_flock, _lockf, _fcntl = fcntl.flock, fcntl.lockf, fcntl.fcntl
_SET_LOCKS = [getattr(fcntl, name) for name in ("F_SETLK", "F_SETLKW") if hasattr(fcntl, name)]


class DescriptorCalls:
    """Calls on open files, each stopped at the gate.

    Args:
        gate: Where they stop.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def all(self) -> dict[Callable[..., Any], Callable[..., Any]]:
        """Give what replaces what."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            posix.open: self.open,
            posix.close: self.close,
            posix.closerange: self.closerange,
            posix.dup: self.dup,
            posix.dup2: self.dup2,
            fcntl.flock: self.flock,
            fcntl.lockf: self.lockf,
            posix.lockf: self.os_lockf,
            fcntl.fcntl: self.fcntl,
        }
        for name in ("read", "pread", "readv", "preadv"):
            made[getattr(posix, name)] = self._reading(getattr(posix, name))
        for name in (
            "write",
            "pwrite",
            "writev",
            "pwritev",
            "ftruncate",
            "fchmod",
            "fchown",
            "posix_fallocate",
        ):
            if hasattr(posix, name):
                made[getattr(posix, name)] = self._writing(getattr(posix, name))
        for name in ("fsync", "fdatasync"):
            if hasattr(posix, name):
                made[getattr(posix, name)] = self._syncing(getattr(posix, name))
        for name in ("sendfile", "copy_file_range"):
            if hasattr(posix, name):
                made[getattr(posix, name)] = self._copying(getattr(posix, name), out_first=name == "sendfile")
        return made

    def open(self, path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Open a file or a directory."""
        place = self._gate.place(path, dir_fd)
        if place is None:
            return posix.open(path, flags, mode, dir_fd=dir_fd)  # type: ignore[arg-type]
        words = "|".join(name for name in _FLAGS if flags & getattr(os, name)) or "O_RDONLY"
        return self.open_place(place, path, flags, mode, words)

    def open_place(self, place: str, path: Path, flags: int, mode: int, words: str) -> int:
        """Open what is watched.

        Args:
            place: Where it is.
            path: As the call was given it, for errors.
            flags: As for `os.open`.
            mode: Of a file that is made.
            words: What the report calls this kind of opening.

        Returns:
            The descriptor.
        """
        exclusive = flags & os.O_CREAT and flags & os.O_EXCL
        follow = not (exclusive or flags & os.O_NOFOLLOW)

        def act(recorder: Recorder, _: Go) -> int:
            at = recorder.look(place, follow=follow)
            try:
                descriptor = posix.open(place, flags, mode)
            except OSError as error:
                error.filename = path
                raise
            recorder.seen.append(at.path)
            found = posix.fstat(descriptor).st_ino
            if not at.inode:
                recorder.added(at, found)
            elif flags & os.O_TRUNC and stat.S_ISREG(at.mode):
                recorder.wrote_data(at.inode)
            self._gate.opened(descriptor)
            recorder.result = "created" if not at.inode else "opened"
            return descriptor

        mutates = bool(flags & (os.O_CREAT | os.O_TRUNC))
        return self._gate.step(f"open[{words}]", self._gate.shown(place), act, mutates=mutates)

    def close(self, descriptor: int) -> None:
        """Close a file; this drops its locks."""
        self.closing(descriptor, lambda: posix.close(descriptor))

    def closing(self, descriptor: int, original: Callable[[], None]) -> None:
        """Close a file.

        Args:
            descriptor: The file.
            original: Does it.
        """
        file = self._gate.files.get(descriptor)
        if file is None or not self._gate.watches(descriptor):
            return original()

        def act(recorder: Recorder, _: Go) -> None:
            inode = posix.fstat(descriptor).st_ino
            del self._gate.files[descriptor]
            file.descriptors -= 1
            if file.locked and not file.descriptors:
                recorder.locked(Held(False, "flock", file.locked, f"{self._gate.rank}.{file.number}"))
                file.locked = 0
            if inode in self._gate.record_locks:
                self._gate.record_locks.discard(inode)
                recorder.locked(Held(False, "lockf", inode, str(self._gate.rank)))
            original()

        holds = file.locked or self._gate.record_locks
        return self._gate.step("close", self._gate.name_of(descriptor), act, mutates=bool(holds))

    def closerange(self, low: int, high: int) -> None:
        """Close all descriptors from one to below another."""
        for descriptor in range(low, min(high, 65536)):
            try:
                self.close(descriptor)
            except OSError:
                continue

    def dup(self, descriptor: int) -> int:
        """Give an open file another descriptor."""
        new = posix.dup(descriptor)
        self._share(descriptor, new)
        return new

    def dup2(self, descriptor: int, new: int, inheritable: bool = True) -> int:
        """Give an open file this descriptor too."""
        if new in self._gate.files and new != descriptor:
            self.close(new)
        posix.dup2(descriptor, new, inheritable)
        self._share(descriptor, new)
        return new

    def _share(self, descriptor: int, new: int) -> None:
        if descriptor in self._gate.files and new != descriptor:
            self._gate.files[new] = self._gate.files[descriptor]
            self._gate.files[new].descriptors += 1

    def _reading(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def read(descriptor: int, *args: Any) -> Any:
            return self.reading(original.__name__, descriptor, lambda: original(descriptor, *args))

        return read

    def reading(self, name: str, descriptor: int, original: Callable[[], Any]) -> Any:
        """Read from an open file.

        Args:
            name: The call.
            descriptor: The file.
            original: Does it.

        Returns:
            What it gives: bytes, or how many.
        """
        if not self._gate.watches(descriptor):
            return original()

        def act(recorder: Recorder, _: Go) -> Any:
            recorder.read_file(posix.fstat(descriptor).st_ino)
            got = original()
            recorder.result = f"{got if isinstance(got, int) else len(got or b'')} bytes"
            return got

        return self._gate.step(name, self._gate.name_of(descriptor), act, mutates=False)

    def _writing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def write(descriptor: int, *args: Any) -> Any:
            return self.writing(original.__name__, descriptor, lambda: original(descriptor, *args))

        return write

    def writing(self, name: str, descriptor: int, original: Callable[[], Any]) -> Any:
        """Change an open file.

        Args:
            name: The call.
            descriptor: The file.
            original: Does it.

        Returns:
            What it gives.
        """
        if not self._gate.watches(descriptor):
            return original()

        def act(recorder: Recorder, _: Go) -> Any:
            note = recorder.wrote_file if name in _ATTRIBUTES else recorder.wrote_data
            note(posix.fstat(descriptor).st_ino)
            recorder.seen.append(descriptor_path(descriptor))
            got = original()
            if isinstance(got, int):
                recorder.result = f"{got} bytes"
            return got

        return self._gate.step(name, self._gate.name_of(descriptor), act)

    def _syncing(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: Any) -> None:
            descriptor = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            if not self._gate.watches(descriptor):
                return original(descriptor)

            def act(recorder: Recorder, _: Go) -> None:
                inode = posix.fstat(descriptor).st_ino
                recorder.read_file(inode)
                original(descriptor)
                recorder.synced.append(inode)

            return self._gate.step(original.__name__, self._gate.name_of(descriptor), act, mutates=False)

        return sync

    def _copying(self, original: Callable[..., int], *, out_first: bool) -> Callable[..., int]:
        def copy(first: int, second: int, *args: Any, **options: Any) -> int:
            target, source = (first, second) if out_first else (second, first)
            if not self._gate.watches(target):
                if not self._gate.watches(source):
                    return original(first, second, *args, **options)
                copied: int = self.reading(
                    original.__name__, source, lambda: original(first, second, *args, **options)
                )
                return copied

            def act(recorder: Recorder, _: Go) -> int:
                recorder.read_file(posix.fstat(source).st_ino)
                recorder.wrote_data(posix.fstat(target).st_ino)
                recorder.seen.append(descriptor_path(target))
                done = original(first, second, *args, **options)
                recorder.result = f"{done} bytes"
                return done

            return self._gate.step(original.__name__, self._gate.name_of(target), act)

        return copy

    def flock(self, fd: Any, operation: int) -> Any:
        """Take or drop the lock of an open file."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        file = self._gate.files.get(descriptor)
        if file is None or not self._gate.watches(descriptor):
            return _flock(descriptor, operation)
        owner, inode = f"{self._gate.rank}.{file.number}", posix.fstat(descriptor).st_ino
        shared = bool(operation & fcntl.LOCK_SH)

        def act(recorder: Recorder, _: Go) -> None:
            recorder.tried_lock(inode)
            _flock(descriptor, operation | (0 if operation & fcntl.LOCK_UN else fcntl.LOCK_NB))
            if operation & fcntl.LOCK_UN:
                file.locked = 0
                recorder.locked(Held(False, "flock", inode, owner))
            else:
                file.locked = inode
                recorder.locked(Held(True, "flock", inode, owner, shared))

        wait = None if operation & (fcntl.LOCK_UN | fcntl.LOCK_NB) else Acquire("flock", inode, owner, shared)
        name = f"flock[{_words(operation)}]"
        return self._gate.step(name, self._gate.name_of(descriptor), act, wait=wait)

    def lockf(self, fd: Any, cmd: int, len: int = 0, start: int = 0, whence: int = 0) -> Any:  # noqa: A002
        """Take or drop the record lock of a file; parts of files count as the whole."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if not self._gate.watches(descriptor):
            return _lockf(descriptor, cmd, len, start, whence)
        return self._record(descriptor, cmd, lambda flag: _lockf(descriptor, cmd | flag, len, start, whence))

    def _record(self, descriptor: int, cmd: int, original: Callable[[int], Any]) -> Any:
        owner, inode = str(self._gate.rank), posix.fstat(descriptor).st_ino
        shared = bool(cmd & fcntl.LOCK_SH)

        def act(recorder: Recorder, _: Go) -> Any:
            recorder.tried_lock(inode)
            done = original(0 if cmd & fcntl.LOCK_UN else fcntl.LOCK_NB)
            if cmd & fcntl.LOCK_UN:
                self._gate.record_locks.discard(inode)
                recorder.locked(Held(False, "lockf", inode, owner))
            else:
                self._gate.record_locks.add(inode)
                recorder.locked(Held(True, "lockf", inode, owner, shared))
            return done

        wait = None if cmd & (fcntl.LOCK_UN | fcntl.LOCK_NB) else Acquire("lockf", inode, owner, shared)
        return self._gate.step(f"lockf[{_words(cmd)}]", self._gate.name_of(descriptor), act, wait=wait)

    def fcntl(self, fd: Any, cmd: int, arg: Any = 0) -> Any:
        """Pass on all but record locks, which are taken as by `lockf`."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if cmd not in _SET_LOCKS or not self._gate.watches(descriptor):
            return _fcntl(fd, cmd, arg)
        kind = struct.unpack_from("h", arg)[0]
        meant = {fcntl.F_RDLCK: fcntl.LOCK_SH, fcntl.F_WRLCK: fcntl.LOCK_EX}.get(kind, fcntl.LOCK_UN)
        if cmd == fcntl.F_SETLK:
            meant |= fcntl.LOCK_NB
        return self._record(descriptor, meant, lambda _: _fcntl(fd, fcntl.F_SETLK, arg))

    def os_lockf(self, descriptor: int, command: int, length: int) -> None:
        """Refuse what is not explored, rather than to let it block."""
        if self._gate.watches(descriptor):
            raise NotImplementedError("os.lockf cannot be explored; fcntl.lockf and fcntl.flock can")
        posix.lockf(descriptor, command, length)


def _words(operation: int) -> str:
    names = ["UN" if operation & fcntl.LOCK_UN else "SH" if operation & fcntl.LOCK_SH else "EX"]
    if operation & fcntl.LOCK_NB:
        names.append("NB")
    return "|".join(names)
