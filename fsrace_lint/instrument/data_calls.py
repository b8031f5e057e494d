"""The calls that read, write, and copy data: those of more than one page are two calls.

While a process writes many pages, other processes can read some of them. POSIX says only that writes "can be
serialized with respect to other reads and writes". Among the filesystems of Linux, XFS alone does that for
buffered reads: https://lkml.iu.edu/hypermail/linux/kernel/1906.1/07127.html. The lock of the inode excludes
other writers. A network filesystem has no such lock between clients.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from fsrace_lint.instrument.interception import Calls, available
from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import Lookup

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.file_table import OpenFileDescription
    from fsrace_lint.instrument.model import AdvisoryLock, Answer
    from fsrace_lint.instrument.recorder import Recorder

PAGE: Final = 4096
"""The number of bytes up to which a call is atomic."""

_LASTING: Final = ("ENOSPC", "EIO")
"""The injected errors that all further transfers of the open file get too."""

T = TypeVar("T", bytes, int)


class Transfer(NamedTuple):
    """A call that moves data.

    Attributes:
        name: The call.
        source: The descriptor that it reads, or -1.
        target: The descriptor that it writes, or -1.
        size: Returns the number of bytes that it would move now.
    """

    name: str
    source: int
    target: int
    size: Callable[[], int]


class DataCalls(Calls):
    """Calls that move data, each intercepted."""

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        kinds = ("read", "pread", "readv", "preadv", "write", "pwrite", "writev", "pwritev")
        made: dict[Callable[..., Any], Callable[..., Any]] = {
            original: self._checked(original, getattr(self, f"_{original.__name__}"))
            for original in available(*kinds)
        }
        for original in available("sendfile", "copy_file_range"):
            made[original] = getattr(self, f"_{original.__name__}")
        return made

    def watches(self, descriptor: int) -> bool:
        """Return whether the calls on a descriptor are intercepted now."""
        return self._is_watched(descriptor)

    def _checked(self, original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
        def call(descriptor: int, *args: Any) -> Any:
            if not self._is_watched(descriptor):
                return original(descriptor, *args)
            return replacement(descriptor, *args)

        return call

    def _read(self, descriptor: int, length: int) -> bytes:
        return self.reading(
            descriptor, length, lambda start, stop: posix.read(descriptor, (stop or length) - start)
        )

    def _pread(self, descriptor: int, length: int, offset: int) -> bytes:
        return self.reading(
            descriptor,
            length,
            lambda start, stop: posix.pread(descriptor, (stop or length) - start, offset + start),
            name="pread",
            offset=offset,
        )

    def _readv(self, descriptor: int, buffers: Any) -> int:
        views = _views(buffers)
        return self.reading(
            descriptor,
            sum(map(len, views)),
            lambda start, stop: posix.readv(descriptor, _slices(views, start, stop)),
            name="readv",
        )

    def _preadv(self, descriptor: int, buffers: Any, offset: int, flags: int = 0) -> int:
        views = _views(buffers)
        return self.reading(
            descriptor,
            sum(map(len, views)),
            lambda start, stop: posix.preadv(descriptor, _slices(views, start, stop), offset + start, flags),
            name="preadv",
            offset=offset,
        )

    def _write(self, descriptor: int, data: Any) -> int:
        view = memoryview(data).cast("B")
        return self.writing(
            descriptor, len(view), lambda start, stop: posix.write(descriptor, view[start:stop])
        )

    def _pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        view = memoryview(data).cast("B")
        return self.writing(
            descriptor,
            len(view),
            lambda start, stop: posix.pwrite(descriptor, view[start:stop], offset + start),
            name="pwrite",
        )

    def _writev(self, descriptor: int, buffers: Any) -> int:
        views = _views(buffers)
        return self.writing(
            descriptor,
            sum(map(len, views)),
            lambda start, stop: posix.writev(descriptor, _slices(views, start, stop)),
            name="writev",
        )

    def _pwritev(self, descriptor: int, buffers: Any, offset: int, flags: int = 0) -> int:
        views = _views(buffers)
        return self.writing(
            descriptor,
            sum(map(len, views)),
            lambda start, stop: posix.pwritev(descriptor, _slices(views, start, stop), offset + start, flags),
            name="pwritev",
        )

    def _sendfile(
        self, out_fd: int, in_fd: int, offset: int | None, count: int, *rest: Any, **more: Any
    ) -> int:
        # only sockets have headers and trailers
        if rest or more or not (self._is_watched(in_fd) or self._is_watched(out_fd)):
            return posix.sendfile(out_fd, in_fd, offset, count, *rest, **more)

        def copy(start: int, stop: int | None) -> int:
            at = None if offset is None else offset + start
            return posix.sendfile(out_fd, in_fd, at, (stop or count) - start)

        return self._copying("sendfile", in_fd, out_fd, lambda: _available(in_fd, count, offset), copy)

    def _copy_file_range(
        self, src: int, dst: int, count: int, offset_src: int | None = None, offset_dst: int | None = None
    ) -> int:
        def copy(start: int, stop: int | None) -> int:
            read_at, write_at = (None if at is None else at + start for at in (offset_src, offset_dst))
            length = (stop or count) - start
            return posix.copy_file_range(src, dst, length, offset_src=read_at, offset_dst=write_at)

        if not (self._is_watched(src) or self._is_watched(dst)):
            return copy(0, None)
        return self._copying("copy_file_range", src, dst, lambda: _available(src, count, offset_src), copy)

    def _copying(
        self,
        name: str,
        source: int,
        target: int,
        size: Callable[[], int],
        copy: Callable[[int, int | None], int],
    ) -> int:
        source, target = (each if self._is_watched(each) else -1 for each in (source, target))
        return self._moved(Transfer(name, source, target, size), copy)

    def reading(
        self,
        descriptor: int,
        size: int | None,
        original: Callable[[int, int | None], T],
        *,
        name: str = "read",
        offset: int | None = None,
    ) -> T:
        """Read from an open file that is watched.

        Args:
            descriptor: The file.
            size: The maximum number of bytes, or None for all that are there.
            original: Reads a part: from an index to an index, or to the end if that is None.
            name: The call.
            offset: The place to read from, if not the current one.

        Returns:
            The result of `original`: bytes, or their number.
        """
        return self._moved(
            Transfer(name, descriptor, -1, lambda: _available(descriptor, size, offset)), original
        )

    def writing(
        self, descriptor: int, size: int, original: Callable[[int, int | None], int], *, name: str = "write"
    ) -> int:
        """Write to an open file that is watched.

        Args:
            descriptor: The file.
            size: The number of bytes.
            original: Writes a part: from an index to an index, or to the end if that is None.
            name: The call.

        Returns:
            The number of bytes that were written.
        """
        return self._moved(Transfer(name, -1, descriptor, lambda: size), original)

    def _moved(self, transfer: Transfer, original: Callable[[int, int | None], T]) -> T:
        """Move the data in one call, or in two if it has more than one page."""
        name, source, target, size = transfer
        inode = posix.fstat(source if target < 0 else target).st_ino
        lock = None if target < 0 else self._write_lock(inode)
        lookup = self._cache_lookup(inode, is_read=target < 0)
        shown = self._files.shown(source if target < 0 else target)
        self._refuse_failing(transfer, shown)
        cut = 0

        def first(recorder: Recorder, answer: Answer | None) -> T:
            nonlocal cut
            self._note(recorder, transfer, lock)
            self._use_cache(recorder, inode, answer, is_read=target < 0)
            if target < 0 and answer is not None:
                got = with_data(source, answer.data, lambda: original(0, None))
                recorder.result = in_bytes(_length(got))
                return got
            total = size()
            part = half(total) if total > PAGE and self._interceptor.splits_data else None
            got = original(0, part)
            recorder.result = in_bytes(_length(got))
            if part is not None and _length(got) == part:
                cut = part
                recorder.result = f"{part} of {in_bytes(total)}"
                if lock is not None:
                    recorder.took_lock(lock)
            return got

        def second(recorder: Recorder, _: Answer | None) -> T:
            self._note(recorder, transfer, lock)
            if lock is not None:
                recorder.dropped_lock(lock)
            got = original(cut, None)
            recorder.result = f"the other {in_bytes(_length(got))}"
            return got

        def fail(recorder: Recorder, fault: str) -> None:
            if lock is not None:
                (recorder.dropped_lock if cut else recorder.changed_lock)(lock)
            if fault in _LASTING:
                file, way = self._end(transfer)
                file.failing[way] = getattr(errno, fault)

        options: dict[str, Any] = {"mutates": target >= 0, "on_fault": fail}
        got = self._intercept(name, shown, first, lock=lock, lookup=lookup, **options)
        if not cut:
            return got
        try:
            return got + self._intercept(name, shown, second, is_rest=True, **options)
        except OSError:
            # read(2) and write(2) return the number of bytes that were moved before the error
            return got

    def _cache_lookup(self, inode: int, *, is_read: bool) -> Lookup | None:
        # closing any descriptor of the file, as a stale answer does, would release these locks
        if not self._files.caches or (is_read and inode in self._files.record_locks):
            return None
        return Lookup("read" if is_read else "write", "", inode)

    def _use_cache(self, recorder: Recorder, inode: int, answer: Answer | None, *, is_read: bool) -> None:
        self._use_handle(recorder, inode, answer)
        if is_read and answer is None and self._files.caches:
            recorder.refreshed_cache(inode)

    def _end(self, transfer: Transfer) -> tuple[OpenFileDescription, str]:
        """Return the file that a transfer is about, and the way that the data goes."""
        if transfer.target < 0:
            return self._files.by_descriptor[transfer.source], "read"
        return self._files.by_descriptor[transfer.target], "write"

    def _refuse_failing(self, transfer: Transfer, shown: str) -> None:
        """Fail as an earlier transfer failed: a disk stays full, and a bad sector stays bad."""
        file, way = self._end(transfer)
        number = file.failing.get(way)
        if number is None:
            return

        def act(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        self._intercept(transfer.name, shown, act, mutates=False, can_fail=False)

    def _note(self, recorder: Recorder, transfer: Transfer, lock: AdvisoryLock | None) -> None:
        if transfer.source >= 0:
            recorder.reads("file", posix.fstat(transfer.source).st_ino)
        if transfer.target >= 0:
            self._files.by_descriptor[transfer.target].is_written = True
            recorder.wrote_data(posix.fstat(transfer.target).st_ino)
            self._wrote(recorder, transfer.target, posix.fstat(transfer.target).st_ino)
        if lock is not None:
            recorder.changed_lock(lock)


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


def half(size: int) -> int:
    """Return the size of the first part of a transfer: about half, in whole pages."""
    return max(PAGE, size // 2 // PAGE * PAGE)


def in_bytes(number: int) -> str:
    """Return a number of bytes for display."""
    return "1 byte" if number == 1 else f"{number} bytes"


def _length(got: bytes | int | None) -> int:
    return got if isinstance(got, int) else len(got or b"")


def _available(descriptor: int, size: int | None, offset: int | None) -> int:
    """Return how many bytes a call would read from a file now; 0 if it is not a regular file."""
    found = posix.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return 0
    at = posix.lseek(descriptor, 0, os.SEEK_CUR) if offset is None else offset
    left = max(0, found.st_size - at)
    return left if size is None else min(size, left)


def _views(buffers: Any) -> list[memoryview]:
    return [memoryview(buffer).cast("B") for buffer in buffers]


def _slices(views: list[memoryview], start: int, stop: int | None) -> list[memoryview]:
    found = []
    for view in views:
        found.append(view[start:stop] if stop is None else view[max(0, start) : max(0, stop)])
        start = max(0, start - len(view))
        stop = None if stop is None else max(0, stop - len(view))
    return [view for view in found if view] or found[:1]
