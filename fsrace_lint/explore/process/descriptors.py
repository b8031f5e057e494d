"""The calls of `os` and `fcntl` on open files."""

from __future__ import annotations

import os
import posix
import stat
from typing import TYPE_CHECKING, Any

from fsrace_lint.explore.process.gate import Calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import Go
    from fsrace_lint.explore.process.gate import Path
    from fsrace_lint.explore.process.places import Recorder

_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_EXCL", "O_TRUNC", "O_APPEND", "O_DIRECTORY")
_ATTRIBUTES = ("fchmod", "fchown")
_NAMELESS: int = getattr(os, "O_TMPFILE", 0)


class DescriptorCalls(Calls):
    """Calls on open files, each stopped at the gate."""

    def all(self) -> dict[Any, Any]:
        """Give what replaces what."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            posix.open: self.open,
            posix.close: self.close,
            posix.closerange: self.closerange,
            posix.dup: self.dup,
            posix.dup2: self.dup2,
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
        if _NAMELESS and flags & _NAMELESS == _NAMELESS:
            return self._open_nameless(place, (path, dir_fd), flags, mode)
        words = "|".join(name for name in _FLAGS if flags & getattr(os, name)) or "O_RDONLY"
        return self.open_place(place, (path, dir_fd), flags, mode, words)

    def open_place(self, place: str, given: tuple[Any, int | None], flags: int, mode: int, words: str) -> int:
        """Open what is watched.

        Args:
            place: Where it is.
            given: The same as the caller wrote it, with what it is relative to.
            flags: As for `os.open`.
            mode: Of a file that is made.
            words: What the report calls this kind of opening.

        Returns:
            The descriptor.
        """
        exclusive = flags & os.O_CREAT and flags & os.O_EXCL
        follow = not (exclusive or flags & os.O_NOFOLLOW)

        def act(recorder: Recorder, _: Go) -> int:
            at = recorder.look(*given, follow=follow)
            descriptor = posix.open(given[0], flags, mode, dir_fd=given[1])
            recorder.seen.append(at.path)
            found = posix.fstat(descriptor).st_ino
            if not at.inode:
                recorder.added(at, found)
            elif flags & os.O_TRUNC and stat.S_ISREG(at.mode):
                recorder.wrote_data(at.inode)
            if not at.inode or flags & os.O_TRUNC:
                self._gate.stamp(descriptor)
            self._gate.opened(descriptor)
            recorder.result = "created" if not at.inode else "opened"
            return descriptor

        mutates = bool(flags & (os.O_CREAT | os.O_TRUNC))
        return self._gate.step(f"open[{words}]", self._gate.shown(place), act, mutates=mutates)

    def _open_nameless(self, place: str, given: tuple[Any, int | None], flags: int, mode: int) -> int:
        """Make a file in a directory that nobody finds there: open(2) on `O_TMPFILE`."""

        def act(recorder: Recorder, _: Go) -> int:
            recorder.look(*given)
            descriptor = posix.open(given[0], flags, mode, dir_fd=given[1])
            recorder.made.append(posix.fstat(descriptor).st_ino)
            self._gate.stamp(descriptor)
            self._gate.opened(descriptor, is_nameless=True)
            recorder.result = "created"
            return descriptor

        return self._gate.step("open[O_TMPFILE]", self._gate.shown(place), act, mutates=False)

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
            if file.flock is not None and not file.descriptors:
                recorder.locked(file.flock.dropped())
                file.flock = None
            if inode in self._gate.record_locks:
                recorder.locked(self._gate.record_locks.pop(inode).dropped())
            original()

        holds = file.flock or self._gate.record_locks
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
        self._gate.share(descriptor, new)
        return new

    def dup2(self, descriptor: int, new: int, inheritable: bool = True) -> int:
        """Give an open file this descriptor too."""
        if new in self._gate.files and new != descriptor:
            self.close(new)
        posix.dup2(descriptor, new, inheritable)
        self._gate.share(descriptor, new)
        return new

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
            got = original()
            if name not in _ATTRIBUTES:
                self._gate.stamp(descriptor)
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
                done = original(first, second, *args, **options)
                self._gate.stamp(target)
                recorder.result = f"{done} bytes"
                return done

            return self._gate.step(original.__name__, self._gate.name_of(target), act)

        return copy
