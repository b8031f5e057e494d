"""The calls that take and drop locks: `flock`, and the record locks of `lockf` and `fcntl`."""

from __future__ import annotations

import fcntl
import posix
import struct
from typing import TYPE_CHECKING, Any

from fsrace_lint.explore.messages import Acquire, Held
from fsrace_lint.explore.process.gate import Calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import Go
    from fsrace_lint.explore.process.places import Recorder

# as they were before a process's own were replaced
_flock, _lockf, _fcntl = fcntl.flock, fcntl.lockf, fcntl.fcntl
_SET_LOCKS = [getattr(fcntl, name) for name in ("F_SETLK", "F_SETLKW") if hasattr(fcntl, name)]
_OPEN_FILE_LOCKS = [getattr(fcntl, name) for name in ("F_OFD_SETLK", "F_OFD_SETLKW") if hasattr(fcntl, name)]
_DUPLICATING = (fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC)


class LockCalls(Calls):
    """Calls that lock, each stopped at the gate."""

    def all(self) -> dict[Any, Any]:
        """Give what replaces what."""
        return {
            fcntl.flock: self.flock,
            fcntl.lockf: self.lockf,
            fcntl.fcntl: self.fcntl,
            posix.lockf: self.os_lockf,
        }

    def flock(self, fd: Any, operation: int) -> Any:
        """Take or drop the lock of an open file."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        file = self._gate.files.get(descriptor)
        if file is None or not self._gate.watches(descriptor):
            return _flock(descriptor, operation)
        inode = posix.fstat(descriptor).st_ino
        wanted = Held(
            taken=True,
            kind="flock",
            inode=inode,
            owner=f"{self._gate.rank}.{file.number}",
            shared=bool(operation & fcntl.LOCK_SH),
        )

        is_conversion = file.flock is not None and file.flock.shared != wanted.shared
        if is_conversion and not operation & (fcntl.LOCK_UN | fcntl.LOCK_NB):
            # flock(2): the existing lock is first removed, and then a new lock is established
            self.flock(fd, fcntl.LOCK_UN)

        def note(recorder: Recorder, held: Held | None) -> None:
            if file.flock is not None:
                recorder.locked(file.flock.dropped())
            file.flock = held
            if held is not None:
                recorder.locked(held)

        def original(flag: int) -> None:
            _flock(descriptor, operation | flag)

        return self._step(descriptor, operation, wanted, original, note, is_lost=is_conversion)

    def lockf(self, fd: Any, cmd: int, len: int = 0, start: int = 0, whence: int = 0) -> Any:  # noqa: A002
        """Take or drop the record lock of a file; a part of a file counts as the whole."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if not self._gate.watches(descriptor):
            return _lockf(descriptor, cmd, len, start, whence)
        return self._record(descriptor, cmd, lambda flag: _lockf(descriptor, cmd | flag, len, start, whence))

    def fcntl(self, fd: Any, cmd: int, arg: Any = 0) -> Any:
        """Pass on all but record locks, which are taken as by `lockf`."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if cmd in _OPEN_FILE_LOCKS and self._gate.watches(descriptor):
            raise NotImplementedError("locks of open files (F_OFD_SETLK) cannot be explored; fcntl.flock can")
        if cmd in _DUPLICATING and self._gate.watches(descriptor):
            new = _fcntl(fd, cmd, arg)
            self._gate.share(descriptor, new)
            return new
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

    def _record(self, descriptor: int, operation: int, original: Callable[[int], Any]) -> Any:
        inode, locks = posix.fstat(descriptor).st_ino, self._gate.record_locks
        wanted = Held(
            taken=True,
            kind="lockf",
            inode=inode,
            owner=str(self._gate.rank),
            shared=bool(operation & fcntl.LOCK_SH),
        )

        def note(recorder: Recorder, held: Held | None) -> None:
            if inode in locks:
                recorder.locked(locks.pop(inode).dropped())
            if held is not None:
                locks[inode] = held
                recorder.locked(held)

        return self._step(descriptor, operation, wanted, original, note)

    def _step(
        self,
        descriptor: int,
        operation: int,
        wanted: Held,
        original: Callable[[int], Any],
        note: Callable[[Recorder, Held | None], None],
        *,
        is_lost: bool = False,
    ) -> Any:
        drops = bool(operation & fcntl.LOCK_UN)

        def act(recorder: Recorder, _: Go) -> Any:
            try:
                done = original(0 if drops else fcntl.LOCK_NB)
            except OSError:
                recorder.tried_lock(wanted.inode)
                if is_lost:
                    note(recorder, None)
                raise
            note(recorder, None if drops else wanted)
            return done

        waits = not operation & (fcntl.LOCK_UN | fcntl.LOCK_NB)
        wait = Acquire(wanted.kind, wanted.inode, wanted.owner, wanted.shared) if waits else None
        name = f"{wanted.kind}[{_words(operation)}]"
        return self._gate.step(name, self._gate.name_of(descriptor), act, wait=wait)


def _words(operation: int) -> str:
    names = ["UN" if operation & fcntl.LOCK_UN else "SH" if operation & fcntl.LOCK_SH else "EX"]
    if operation & fcntl.LOCK_NB:
        names.append("NB")
    return "|".join(names)
