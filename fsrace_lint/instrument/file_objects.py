"""`open()` and its file objects: the open, every flush, and the close are separate calls."""

from __future__ import annotations

import errno
import io
import os
import stat
import weakref
from typing import TYPE_CHECKING, Any

from fsrace_lint.instrument.interception import Calls
from fsrace_lint.instrument.kernel import posix

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.data_calls import DataCalls
    from fsrace_lint.instrument.descriptor_calls import DescriptorCalls
    from fsrace_lint.instrument.file_table import FileTable
    from fsrace_lint.instrument.interception import Interceptor

# the original class, before a process replaces it
_FileIO = io.FileIO
_KINDS = {
    "r": os.O_RDONLY,
    "w": os.O_CREAT | os.O_TRUNC,
    "a": os.O_CREAT | os.O_APPEND,
    "x": os.O_CREAT | os.O_EXCL,
}


class FileObjects(Calls):
    """Opens files whose calls are intercepted.

    Args:
        interceptor: The interceptor of the calls.
        files: The open files of the process.
        calls: The calls on descriptors.
        data: The calls that move data.
    """

    def __init__(
        self, interceptor: Interceptor, files: FileTable, calls: DescriptorCalls, data: DataCalls
    ) -> None:
        super().__init__(interceptor, files)
        self._calls, self._data = calls, data
        self._original = io.open
        self._open_code = io.open_code

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        return {io.open: self.open, io.open_code: self.open_code, io.FileIO: self._file_class()}

    def open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Callable[[str, int], int] | None = None,
    ) -> Any:
        """Open a file as `io.open()` does."""
        place = None if isinstance(file, int) else self._place(file)
        if place is None and not (isinstance(file, int) and self._is_watched(file)):
            return self._original(file, mode, buffering, encoding, errors, newline, closefd, opener)
        # the original functions report invalid arguments
        binary = "b" in mode
        io.StringIO() if binary else io.TextIOWrapper(io.BytesIO(), encoding, errors, newline)
        if buffering == 0 and not binary:
            raise ValueError("can't have unbuffered text I/O")
        kind = mode.replace("b", "").replace("t", "")
        if place is None:
            raw = InterceptedFile(self._calls, self._data, file, kind, closefd)
        else:
            raw = self._opened(place, file, kind, opener)
        made = self._wrapped(raw, mode, buffering, encoding, errors, newline)
        self._files.streams.append(weakref.ref(made))
        return made

    def open_code(self, path: str) -> Any:
        """Open a file as `io.open_code()` does."""
        return self._open_code(path) if self._place(path) is None else self.open(path, "rb")

    def _file_class(self) -> type[io.FileIO]:
        """Return a class that opens files as `io.FileIO` does."""
        files = self

        class AnyFile(type):
            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, _FileIO)

            def __subclasscheck__(cls, kind: type) -> bool:
                return issubclass(kind, _FileIO)

            def __call__(cls, file: Any, mode: str = "r", closefd: bool = True, opener: Any = None) -> Any:
                if cls is not OpenedFile:
                    return super().__call__(file, mode, closefd, opener)
                is_watched = files._is_watched(file) if isinstance(file, int) else files._place(file)
                if not is_watched:
                    return _FileIO(file, mode, closefd, opener)
                return files.open(file, mode.replace("b", "") + "b", 0, closefd=closefd, opener=opener)

        class OpenedFile(_FileIO, metaclass=AnyFile):  # type: ignore[metaclass]
            pass

        return OpenedFile

    def _wrapped(
        self,
        raw: io.FileIO,
        mode: str,
        buffering: int,
        encoding: str | None,
        errors: str | None,
        newline: str | None,
    ) -> Any:
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        buffered: Any
        if raw.readable() and raw.writable():
            buffered = io.BufferedRandom(raw, size)
        else:
            buffered = io.BufferedWriter(raw, size) if raw.writable() else io.BufferedReader(raw, size)
        if "b" in mode:
            return buffered
        text = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
        text.mode = mode  # type: ignore[misc]
        return text

    def _opened(
        self, place: str, file: Any, mode: str, opener: Callable[[str, int], int] | None
    ) -> InterceptedFile:
        kind = next((each for each in mode if each in _KINDS), "")
        if not kind or mode.count("+") > 1:
            _FileIO(os.devnull, mode)
            raise ValueError(f"invalid mode: {mode!r}")
        access = os.O_RDWR if "+" in mode else os.O_RDONLY if kind == "r" else os.O_WRONLY
        flags = _KINDS[kind] | access | os.O_CLOEXEC
        if opener is None:
            descriptor = self._calls.open_place(place, (file, None), flags, 0o666, mode)
        else:
            descriptor = opener(file, flags)
            if descriptor not in self._files.by_descriptor:
                self._files.opened(descriptor)
        if stat.S_ISDIR(posix.fstat(descriptor).st_mode):
            self._calls.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), file)
        made = InterceptedFile(self._calls, self._data, descriptor, mode.replace("x", "w"))
        made.name = file
        return made


class InterceptedFile(_FileIO):
    """An unbuffered file whose calls are intercepted."""

    def __init__(
        self, calls: DescriptorCalls, data: DataCalls, descriptor: int, mode: str, closefd: bool = True
    ) -> None:
        super().__init__(descriptor, mode, closefd)
        self._calls, self._data = calls, data
        self._owned = closefd

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        if not self._data.watches(self.fileno()) or not self.readable():
            return _FileIO.readinto(self, buffer)
        view = memoryview(buffer).cast("B")
        return self._data.reading(
            self.fileno(), len(view), lambda start, stop: _FileIO.readinto(self, view[start:stop])
        )

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes, or all."""
        if size is None or size < 0:
            return self.readall()
        if not self._data.watches(self.fileno()) or not self.readable():
            return _FileIO.read(self, size)
        return self._data.reading(
            self.fileno(), size, lambda start, stop: _FileIO.read(self, (stop or size) - start)
        )

    def readall(self) -> bytes:
        """Read all remaining bytes: as the original does, until a read returns none."""
        if not self._data.watches(self.fileno()) or not self.readable():
            return _FileIO.readall(self)
        pieces = []
        while piece := self._data.reading(self.fileno(), None, self._some):
            pieces.append(piece)
        return b"".join(pieces)

    def _some(self, start: int, stop: int | None) -> bytes:
        if stop is None:
            stop = start + max(0, os.fstat(self.fileno()).st_size - self.tell()) + 1
        return _FileIO.read(self, stop - start)

    def write(self, data: Any) -> int:
        """Write some bytes."""
        if not self._data.watches(self.fileno()) or not self.writable():
            return _FileIO.write(self, data)
        view = memoryview(data).cast("B")
        return self._data.writing(
            self.fileno(), len(view), lambda start, stop: _FileIO.write(self, view[start:stop])
        )

    def seek(self, offset: int, whence: int = 0) -> int:
        """Change the position; relative to the end, this reads the size."""
        if whence != os.SEEK_END:
            return super().seek(offset, whence)
        return self._calls.measuring("seek", self.fileno(), lambda: _FileIO.seek(self, offset, whence))

    def truncate(self, size: int | None = None) -> int:
        """Truncate or extend the file."""
        return self._calls.changing("truncate", self.fileno(), lambda: _FileIO.truncate(self, size))

    def close(self) -> None:
        """Close the file."""
        if not self.closed and self._owned:
            self._calls.closing(self.fileno(), lambda: _FileIO.close(self))
        else:
            super().close()
