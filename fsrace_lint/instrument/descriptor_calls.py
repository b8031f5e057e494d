"""The calls of `os` and `fcntl` on open files."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Any, TypeVar

from fsrace_lint.instrument.data_calls import in_bytes
from fsrace_lint.instrument.interception import Calls, available
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import EVERY_FILE, Lookup
from fsrace_lint.instrument.watched_tree import descriptor_path

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
            posix.lseek: self.lseek,
            posix.dup: self.dup,
            posix.dup2: self.dup2,
            posix.sync: self.sync,
        }
        for original in available("ftruncate", "posix_fallocate", *_ATTRIBUTES):
            made[original] = self._with(self.changing, original)
        for original in available("fsync", "fdatasync"):
            made[original] = self._syncing(original)
        return made

    def open(self, path: Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Open a file or a directory."""
        place = self._place(path, dir_fd)
        if place is None:
            if dir_fd is not None and self._interceptor.is_active():
                # an audit hook is not given the directory
                path, dir_fd = os.path.join(descriptor_path(dir_fd), os.fsdecode(path)), None  # type: ignore[arg-type]
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
        lock = self._write_lock(0, place) if flags & os.O_TRUNC else None

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
                if lock is not None:
                    recorder.changed_lock(lock._replace(inode=at.inode))
            if not at.inode or flags & os.O_TRUNC:
                recorder.modified.append(descriptor)
            self._files.opened(descriptor, syncs=bool(flags & _SYNCED))
            recorder.result = "created" if not at.inode else "opened"
            return descriptor

        mutates = bool(flags & (os.O_CREAT | os.O_TRUNC))
        shown = self._tree.shown(place)
        creates = place if flags & os.O_CREAT else ""
        return self._intercept(f"open[{words}]", shown, act, mutates=mutates, lock=lock, creates=creates)

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
        shown = self._files.shown(descriptor)
        # close(2): the descriptor is released in any case
        return self._intercept(
            "close",
            shown,
            act,
            mutates=bool(holds),
            can_fail=file.is_written,
            on_fault=lambda recorder, _: act(recorder, None),
        )

    def closerange(self, low: int, high: int) -> None:
        """Close all descriptors in a range."""
        for descriptor in range(low, min(high, 65536)):
            try:
                self.close(descriptor)
            except OSError:
                continue

    def lseek(self, descriptor: int, position: int, whence: int) -> int:
        """Change the position; relative to the end, this reads the size."""
        if whence in {os.SEEK_SET, os.SEEK_CUR}:
            return posix.lseek(descriptor, position, whence)
        return self.measuring("lseek", descriptor, lambda: posix.lseek(descriptor, position, whence))

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

    def measuring(self, name: str, descriptor: int, original: Callable[[], T]) -> T:
        """Read the size of an open file.

        Args:
            name: The call.
            descriptor: The file.
            original: Reads it.

        Returns:
            The result of `original`.
        """
        if not self._is_watched(descriptor):
            return original()

        def act(recorder: Recorder, _: Answer | None) -> T:
            recorder.reads("file", posix.fstat(descriptor).st_ino)
            return original()

        return self._intercept(name, self._files.shown(descriptor), act, mutates=False)

    def changing(self, name: str, descriptor: int, original: Callable[[], T]) -> T:
        """Change the size or the attributes of an open file.

        Args:
            name: The call.
            descriptor: The file.
            original: Changes it.

        Returns:
            The result of `original`.
        """
        if not self._is_watched(descriptor):
            return original()
        is_data = name not in _ATTRIBUTES
        lock = self._write_lock(posix.fstat(descriptor).st_ino) if is_data else None

        inode = posix.fstat(descriptor).st_ino

        def act(recorder: Recorder, answer: Answer | None) -> T:
            self._use_handle(recorder, inode, answer)
            if is_data:
                recorder.wrote_data(inode)
            else:
                recorder.writes("file", inode)
            if lock is not None:
                recorder.changed_lock(lock)
            got = original()
            if is_data:
                self._wrote(recorder, descriptor, inode)
            if isinstance(got, int):
                recorder.result = in_bytes(got)
            return got

        lookup = Lookup("write", "", inode) if self._files.caches else None
        return self._intercept(name, self._files.shown(descriptor), act, lookup=lookup, lock=lock)

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

            def fail(recorder: Recorder, _: str) -> None:
                # the kernel marks the pages as clean, and the next fsync() succeeds
                inode = posix.fstat(descriptor).st_ino
                recorder.reads("file", inode)
                recorder.lost.append(inode)

            shown = self._files.shown(descriptor)
            return self._intercept(original.__name__, shown, act, mutates=False, on_fault=fail)

        return sync

    def sync(self) -> None:
        """Sync everything to the disk."""
        if not self._interceptor.is_active():
            return posix.sync()

        def act(recorder: Recorder, _: Answer | None) -> None:
            # a real sync of all disks can take seconds, and would change nothing here
            recorder.synced.append(EVERY_FILE)

        return self._intercept("sync", "", act, mutates=False)
