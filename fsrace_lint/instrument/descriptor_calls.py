"""The calls of `os` and `fcntl` on open files."""

from __future__ import annotations

import contextlib
import errno
import os
import posix
import stat
from typing import TYPE_CHECKING, Any, TypeVar

from fsrace_lint.instrument.interception import Calls, available
from fsrace_lint.instrument.model import EVERY_FILE, Lookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder
    from fsrace_lint.instrument.watched_tree import Path

T = TypeVar("T")
_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_EXCL", "O_TRUNC", "O_APPEND", "O_DIRECTORY")
_ATTRIBUTES = ("fchmod", "fchown")
_NAMELESS: int = getattr(os, "O_TMPFILE", 0)
_SYNCED: int = os.O_SYNC | getattr(os, "O_DSYNC", 0)
"""Flags with which every write is synced; on Linux, `O_SYNC` includes `O_DSYNC`."""


class DescriptorCalls(Calls):
    """Calls on open files, each intercepted."""

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            posix.open: self.open,
            posix.close: self.close,
            posix.closerange: self.closerange,
            posix.dup: self.dup,
            posix.dup2: self.dup2,
            posix.sync: self.sync,
        }
        for original in available("read", "pread", "readv", "preadv"):
            made[original] = self._with(self.reading, original)
        data = ("write", "pwrite", "writev", "pwritev", "ftruncate", "posix_fallocate")
        for original in available(*data, *_ATTRIBUTES):
            made[original] = self._with(self.writing, original)
        for original in available("fsync", "fdatasync"):
            made[original] = self._syncing(original)
        for original in available("sendfile", "copy_file_range"):
            made[original] = self._copying(original, out_first=original.__name__ == "sendfile")
        return made

    def open(self, path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Open a file or a directory."""
        place = self._place(path, dir_fd)
        if place is None:
            return posix.open(path, flags, mode, dir_fd=dir_fd)  # type: ignore[arg-type]
        if _NAMELESS and flags & _NAMELESS == _NAMELESS:
            return self._open_nameless(place, (path, dir_fd), flags, mode)
        words = "|".join(name for name in _FLAGS if flags & getattr(os, name)) or "O_RDONLY"
        return self.open_place(place, (path, dir_fd), flags, mode, words)

    def open_place(self, place: str, given: tuple[Any, int | None], flags: int, mode: int, words: str) -> int:
        """Open a watched path.

        Args:
            place: The absolute path.
            given: The path as the caller wrote it, and the directory descriptor that it is relative to.
            flags: The flags of `os.open()`.
            mode: The mode of a file that is created.
            words: The name of this kind of open in the report.

        Returns:
            The descriptor.
        """
        exclusive = flags & os.O_CREAT and flags & os.O_EXCL
        follow = not (exclusive or flags & os.O_NOFOLLOW)

        def act(recorder: Recorder, _: Answer | None) -> int:
            at = recorder.resolve(*given, follow=follow)
            descriptor = posix.open(given[0], flags, mode, dir_fd=given[1])
            recorder.seen.append(at.path)
            found = posix.fstat(descriptor).st_ino
            if self._files.caches:
                recorder.refreshed_cache(found, is_folder=at.is_folder)
            if not at.inode:
                recorder.added_entry(at, found)
            elif flags & os.O_TRUNC and stat.S_ISREG(at.mode):
                recorder.wrote_data(at.inode)
            if not at.inode or flags & os.O_TRUNC:
                recorder.modified.append(descriptor)
            self._files.opened(descriptor, syncs=bool(flags & _SYNCED))
            recorder.result = "created" if not at.inode else "opened"
            return descriptor

        mutates = bool(flags & (os.O_CREAT | os.O_TRUNC))
        return self._intercept(f"open[{words}]", self._tree.shown(place), act, mutates=mutates)

    def _open_nameless(self, place: str, given: tuple[Any, int | None], flags: int, mode: int) -> int:
        """Create a file without a name in a directory: `O_TMPFILE` in open(2)."""

        def act(recorder: Recorder, _: Answer | None) -> int:
            recorder.resolve(*given)
            descriptor = posix.open(given[0], flags, mode, dir_fd=given[1])
            recorder.created.append(posix.fstat(descriptor).st_ino)
            recorder.modified.append(descriptor)
            self._files.opened(descriptor, is_nameless=True, syncs=bool(flags & _SYNCED))
            recorder.result = "created"
            return descriptor

        return self._intercept("open[O_TMPFILE]", self._tree.shown(place), act, mutates=False)

    def close(self, descriptor: int) -> None:
        """Close a file, which releases its locks."""
        self.closing(descriptor, lambda: posix.close(descriptor))

    def closing(self, descriptor: int, original: Callable[[], None]) -> None:
        """Close a file.

        Args:
            descriptor: The file.
            original: Closes it.
        """
        file = self._files.by_descriptor.get(descriptor)
        if file is None or not self._is_watched(descriptor):
            return original()
        inode = posix.fstat(descriptor).st_ino

        def act(recorder: Recorder, _: Answer | None) -> None:
            del self._files.by_descriptor[descriptor]
            file.descriptors -= 1
            if file.flock is not None and not file.descriptors:
                recorder.dropped_lock(file.flock)
                file.flock = None
            if inode in self._files.record_locks:
                recorder.dropped_lock(self._files.record_locks.pop(inode))
            original()
            if inode in self._files.hidden and not self._files.is_open(inode):
                hidden = self._files.hidden.pop(inode)
                place = recorder.resolve(hidden, follow=False)
                with contextlib.suppress(FileNotFoundError):
                    posix.unlink(hidden)
                    recorder.changed_entry(place)
                    recorder.changed_links(place)

        holds = file.flock or self._files.record_locks or inode in self._files.hidden
        return self._intercept("close", self._files.shown(descriptor), act, mutates=bool(holds))

    def closerange(self, low: int, high: int) -> None:
        """Close all descriptors in a range."""
        for descriptor in range(low, min(high, 65536)):
            try:
                self.close(descriptor)
            except OSError:
                continue

    def dup(self, descriptor: int) -> int:
        """Return another descriptor of an open file."""
        new = posix.dup(descriptor)
        self._files.share(descriptor, new)
        return new

    def dup2(self, descriptor: int, new: int, inheritable: bool = True) -> int:
        """Make a descriptor refer to an open file too."""
        if new in self._files.by_descriptor and new != descriptor:
            self.close(new)
        posix.dup2(descriptor, new, inheritable)
        self._files.share(descriptor, new)
        return new

    def reading(self, name: str, descriptor: int, original: Callable[[], T]) -> T:
        """Read from an open file.

        Args:
            name: The call.
            descriptor: The file.
            original: Reads from it.

        Returns:
            The result of `original`: bytes, or their number.
        """
        if not self._is_watched(descriptor):
            return original()
        inode = posix.fstat(descriptor).st_ino
        # closing any descriptor of the file, as a stale answer does, would release these locks
        is_cached = self._files.caches and inode not in self._files.record_locks
        lookup = Lookup("read", "", inode) if is_cached else None

        def act(recorder: Recorder, answer: Answer | None) -> T:
            recorder.reads("file", inode)
            self._use_handle(recorder, inode, answer)
            if self._files.caches and answer is None:
                recorder.refreshed_cache(inode)
            got = original() if answer is None else with_data(descriptor, answer.data, original)
            size = got if isinstance(got, int) else len(got) if isinstance(got, bytes) else 0
            recorder.result = _bytes(size)
            return got

        return self._intercept(name, self._files.shown(descriptor), act, mutates=False, lookup=lookup)

    def _use_handle(self, recorder: Recorder, inode: int, answer: Answer | None) -> None:
        """Raise an exception if the file was deleted by another client, so that its handle is stale."""
        if self._files.client:
            recorder.reads("links", inode)
        if answer is not None and not answer.there:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def writing(self, name: str, descriptor: int, original: Callable[[], T]) -> T:
        """Change an open file.

        Args:
            name: The call.
            descriptor: The file.
            original: Changes it.

        Returns:
            The result of `original`.
        """
        if not self._is_watched(descriptor):
            return original()

        inode = posix.fstat(descriptor).st_ino

        def act(recorder: Recorder, answer: Answer | None) -> T:
            self._use_handle(recorder, inode, answer)
            if name in _ATTRIBUTES:
                recorder.writes("file", inode)
            else:
                recorder.wrote_data(inode)
            got = original()
            if name not in _ATTRIBUTES:
                self._wrote(recorder, descriptor, inode)
            if isinstance(got, int):
                recorder.result = _bytes(got)
            return got

        lookup = Lookup("write", "", inode)
        return self._intercept(name, self._files.shown(descriptor), act, lookup=lookup)

    @staticmethod
    def _with(method: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
        name = original.__name__
        return lambda descriptor, *args: method(name, descriptor, lambda: original(descriptor, *args))

    def _syncing(self, original: Callable[[int], None]) -> Callable[[int], None]:
        def sync(descriptor: Any) -> None:
            descriptor = descriptor if isinstance(descriptor, int) else descriptor.fileno()
            if not self._is_watched(descriptor):
                return original(descriptor)

            def act(recorder: Recorder, _: Answer | None) -> None:
                inode = posix.fstat(descriptor).st_ino
                recorder.reads("file", inode)
                original(descriptor)
                recorder.synced.append(inode)

            return self._intercept(original.__name__, self._files.shown(descriptor), act, mutates=False)

        return sync

    def sync(self) -> None:
        """Sync everything to the disk."""
        if not self._interceptor.is_active():
            return posix.sync()

        def act(recorder: Recorder, _: Answer | None) -> None:
            # a real sync of all disks can take seconds, and would change nothing here
            recorder.synced.append(EVERY_FILE)

        return self._intercept("sync", "", act, mutates=False)

    def _wrote(self, recorder: Recorder, descriptor: int, inode: int) -> None:
        recorder.modified.append(descriptor)
        if self._files.by_descriptor[descriptor].syncs:
            recorder.synced.append(inode)

    def _copying(self, original: Callable[..., int], *, out_first: bool) -> Callable[..., int]:
        def copy(first: int, second: int, *args: Any, **options: Any) -> int:
            target, source = (first, second) if out_first else (second, first)
            if not self._is_watched(target):
                if not self._is_watched(source):
                    return original(first, second, *args, **options)
                return self.reading(
                    original.__name__, source, lambda: original(first, second, *args, **options)
                )

            def act(recorder: Recorder, _: Answer | None) -> int:
                inode = posix.fstat(target).st_ino
                recorder.reads("file", posix.fstat(source).st_ino)
                recorder.wrote_data(inode)
                done = original(first, second, *args, **options)
                self._wrote(recorder, target, inode)
                recorder.result = _bytes(done)
                return done

            return self._intercept(original.__name__, self._files.shown(target), act)

        return copy


def with_data(descriptor: int, data: bytes, original: Callable[[], T]) -> T:
    """Read from an open file as if it had other contents.

    Args:
        descriptor: The file.
        data: Its contents.
        original: Reads from it.

    Returns:
        The result of `original`.
    """
    position = posix.lseek(descriptor, 0, os.SEEK_CUR)
    saved, other = posix.dup(descriptor), posix.memfd_create("stale")
    try:
        while data:
            data = data[posix.write(other, data) :]
        posix.lseek(other, position, os.SEEK_SET)
        posix.dup2(other, descriptor)
        return original()
    finally:
        position = posix.lseek(descriptor, 0, os.SEEK_CUR)
        posix.dup2(saved, descriptor)
        posix.lseek(descriptor, position, os.SEEK_SET)
        posix.close(saved)
        posix.close(other)


def _bytes(number: int) -> str:
    return "1 byte" if number == 1 else f"{number} bytes"
