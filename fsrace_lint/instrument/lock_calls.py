"""The calls that acquire and release locks: `flock()`, and the record locks of `lockf()` and `fcntl()`."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import TYPE_CHECKING, Any

from fsrace_lint.instrument.interception import Calls
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import AdvisoryLock
from fsrace_lint.instrument.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.model import Answer

# the original functions, before a process replaces its own
_flock, _lockf, _fcntl = fcntl.flock, fcntl.lockf, fcntl.fcntl
_SET_LOCKS = [getattr(fcntl, name) for name in ("F_SETLK", "F_SETLKW") if hasattr(fcntl, name)]
_DUPLICATING = (fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC)
_NO_WAIT = fcntl.LOCK_UN | fcntl.LOCK_NB


class LockCalls(Calls):
    """Calls on locks, each intercepted."""

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        return {fcntl.flock: self.flock, fcntl.lockf: self.lockf, fcntl.fcntl: self.fcntl}

    def flock(self, fd: Any, operation: int) -> Any:
        """Acquire or release the lock of an open file."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        file = self._files.by_descriptor.get(descriptor)
        if file is None or not self._is_watched(descriptor):
            return _flock(descriptor, operation)
        inode = posix.fstat(descriptor).st_ino
        wanted = AdvisoryLock("flock", inode, file.number, bool(operation & fcntl.LOCK_SH))

        is_conversion = file.flock is not None and file.flock.shared != wanted.shared
        if is_conversion and not operation & _NO_WAIT:
            # flock(2): the existing lock is first removed, and then a new lock is established
            self.flock(fd, fcntl.LOCK_UN)

        def note(recorder: Recorder, lock: AdvisoryLock | None) -> None:
            if file.flock is not None:
                recorder.dropped_lock(file.flock)
            file.flock = lock
            if lock is not None:
                recorder.took_lock(lock)

        def original(flag: int) -> None:
            _flock(descriptor, operation | flag)

        return self._lock(descriptor, operation, wanted, original, note, is_lost=is_conversion)

    def lockf(self, fd: Any, cmd: int, len: int = 0, start: int = 0, whence: int = 0) -> Any:  # noqa: A002
        """Acquire or release the record lock of a file; a byte range counts as the whole file."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if not self._is_watched(descriptor):
            return _lockf(descriptor, cmd, len, start, whence)
        return self._record(descriptor, cmd, lambda flag: _lockf(descriptor, cmd | flag, len, start, whence))

    def fcntl(self, fd: Any, cmd: int, arg: Any = 0) -> Any:
        """Acquire or release record locks as `lockf()` does; pass on all other commands."""
        descriptor = fd if isinstance(fd, int) else fd.fileno()
        if cmd in _DUPLICATING and self._is_watched(descriptor):
            new = _fcntl(fd, cmd, arg)
            self._files.share(descriptor, new)
            return new
        if cmd not in _SET_LOCKS or not self._is_watched(descriptor):
            return _fcntl(fd, cmd, arg)
        kind = struct.unpack_from("h", arg)[0]
        meant = {fcntl.F_RDLCK: fcntl.LOCK_SH, fcntl.F_WRLCK: fcntl.LOCK_EX}.get(kind, fcntl.LOCK_UN)
        if cmd == fcntl.F_SETLK:
            meant |= fcntl.LOCK_NB
        return self._record(descriptor, meant, lambda flag: _fcntl(fd, fcntl.F_SETLK if flag else cmd, arg))

    def _record(self, descriptor: int, operation: int, original: Callable[[int], Any]) -> Any:
        inode, locks = posix.fstat(descriptor).st_ino, self._files.record_locks
        wanted = AdvisoryLock("lockf", inode, 0, bool(operation & fcntl.LOCK_SH))

        def note(recorder: Recorder, lock: AdvisoryLock | None) -> None:
            if inode in locks:
                recorder.dropped_lock(locks.pop(inode))
            if lock is not None:
                locks[inode] = lock
                recorder.took_lock(lock)

        return self._lock(descriptor, operation, wanted, original, note)

    def _lock(
        self,
        descriptor: int,
        operation: int,
        wanted: AdvisoryLock,
        original: Callable[[int], Any],
        note: Callable[[Recorder, AdvisoryLock | None], None],
        *,
        is_lost: bool = False,
    ) -> Any:
        drops = bool(operation & fcntl.LOCK_UN)
        flag = 0 if drops or self._interceptor.waits_for_locks else fcntl.LOCK_NB

        def act(recorder: Recorder, _: Answer | None) -> Any:
            if self._files.has_local_locks:
                return self._lock_alone(wanted, note, recorder, drops=drops)
            try:
                done = original(flag)
            except OSError:
                recorder.reads("lock", wanted.inode)
                if is_lost:
                    note(recorder, None)
                raise
            note(recorder, None if drops else wanted)
            if self._files.caches and not drops:
                recorder.refreshed_cache(wanted.inode)
            return done

        name = f"{wanted.kind}[{_words(operation)}]"
        lock = None if operation & _NO_WAIT or self._files.has_local_locks else wanted
        return self._intercept(name, self._files.shown(descriptor), act, lock=lock)

    def _lock_alone(
        self,
        wanted: AdvisoryLock,
        note: Callable[[Recorder, AdvisoryLock | None], None],
        recorder: Recorder,
        *,
        drops: bool,
    ) -> None:
        """Acquire or release a lock that other processes do not see."""
        others = [file.flock for file in self._files.by_descriptor.values() if file.flock is not None]
        conflicts = any(
            (lock.kind, lock.inode) == (wanted.kind, wanted.inode)
            and lock.owner != wanted.owner
            and not (lock.shared and wanted.shared)
            for lock in others
        )
        if conflicts and not drops:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        note(Recorder(self._tree), None if drops else wanted)
        if self._files.caches:
            recorder.refreshed_cache(wanted.inode)


def _words(operation: int) -> str:
    names = ["UN" if operation & fcntl.LOCK_UN else "SH" if operation & fcntl.LOCK_SH else "EX"]
    if operation & fcntl.LOCK_NB:
        names.append("NB")
    return "|".join(names)
