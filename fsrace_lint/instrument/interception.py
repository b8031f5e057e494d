"""Calls that are about to be made, and the interface of their interceptor."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import AdvisoryLock
from fsrace_lint.instrument.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.file_table import FileTable
    from fsrace_lint.instrument.model import Answer, Lookup
    from fsrace_lint.instrument.watched_tree import Path

T = TypeVar("T")


@dataclass(eq=False)
class FilesystemCall(Generic[T]):
    """A call that is about to be made.

    Attributes:
        name: The name of the call, such as "mkdir".
        target: The subject of the call, for display.
        act: Makes the call, and records what it reads and changes.
        recorder: Holds what `act` records.
        mutates: Whether the call can change anything.
        lookup: The lookup, if the call can return a stale answer.
        lock: The lock that the call waits for.
        creates: The absolute path that the call creates; "" if it creates none.
        can_fail: Whether an error can be injected.
        is_rest: Whether this is the second part of a transfer.
        on_fault: Does what the call does in spite of an injected error.
    """

    name: str
    target: str
    act: Callable[[Recorder, Answer | None], T]
    recorder: Recorder
    mutates: bool = True
    lookup: Lookup | None = None
    lock: AdvisoryLock | None = None
    creates: str = ""
    can_fail: bool = True
    is_rest: bool = False
    on_fault: Callable[[Recorder, str], object] | None = None

    def run(self, answer: Answer | None = None, fault: str = "") -> T:
        """Make the call; its outcome is then in the recorder.

        Args:
            answer: The answer of a lookup, instead of the true one.
            fault: The name of an error that the call gets instead; "" for none.

        Returns:
            The result of the call.
        """
        if fault:
            self._fail(fault)
        try:
            return self.act(self.recorder, answer)
        except OSError as error:
            kind = type(error)
            number = errno.errorcode.get(error.errno or 0)
            self.recorder.result = number if kind is OSError and number else kind.__name__
            raise

    def _fail(self, fault: str) -> NoReturn:
        if self.creates:
            self.recorder.resolve(self.creates, follow=False)
        if self.on_fault is not None:
            self.on_fault(self.recorder, fault)
        self.recorder.result = f"{fault} (injected)"
        number = getattr(errno, fault)
        raise OSError(number, os.strerror(number), self.creates or None)


class Interceptor(Protocol):
    """Decides when the calls of a program run.

    Attributes:
        waits_for_locks: Whether a call for a held lock blocks in the kernel, instead of failing.
        sorts_names: Whether directory listings are sorted, instead of in kernel order.
        splits_data: Whether reads and writes of more than one page are two calls.
        excludes_writers: Whether such a write excludes other writers of the file from its start to its end.
    """

    waits_for_locks: bool
    sorts_names: bool
    splits_data: bool
    excludes_writers: bool

    def is_active(self) -> bool:
        """Return whether calls are intercepted now; calls inside another call are not."""

    def intercept(self, call: FilesystemCall[T]) -> T:
        """Run a call at the right time, and return its result."""


class Calls:
    """Calls of one kind, each intercepted.

    Args:
        interceptor: The interceptor of the calls.
        files: The open files of the process.
    """

    def __init__(self, interceptor: Interceptor, files: FileTable) -> None:
        self._interceptor = interceptor
        self._files = files
        self._tree = files.tree

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        raise NotImplementedError

    def _place(self, path: Path, dir_fd: int | None = None) -> str | None:
        """Return the absolute path of a call to intercept, or None; it can contain links and dots."""
        return self._tree.place(path, dir_fd) if self._interceptor.is_active() else None

    def _is_watched(self, descriptor: int) -> bool:
        return self._interceptor.is_active() and descriptor in self._files.by_descriptor

    def _write_lock(self, inode: int, path: str = "") -> AdvisoryLock | None:
        """Return the lock that a writer of a file waits for."""
        return AdvisoryLock("write", inode, 0, False, path) if self._interceptor.excludes_writers else None

    def _use_handle(self, recorder: Recorder, inode: int, answer: Answer | None) -> None:
        """Raise an exception if the file was deleted by another client, so that its handle is stale."""
        if self._files.client:
            recorder.reads("links", inode)
        if answer is not None and not answer.there:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    def _wrote(self, recorder: Recorder, descriptor: int, inode: int) -> None:
        recorder.modified.append(descriptor)
        if self._files.by_descriptor[descriptor].syncs:
            recorder.synced.append(inode)

    def _intercept(
        self,
        name: str,
        target: str,
        act: Callable[[Recorder, Answer | None], T],
        *,
        mutates: bool = True,
        **options: Any,
    ) -> T:
        """Intercept a call; the options are attributes of `FilesystemCall`."""
        return self._interceptor.intercept(
            FilesystemCall(name, target, act, Recorder(self._tree), mutates, **options)
        )


def available(*names: str) -> list[Callable[..., Any]]:
    """Return the functions of `os` with these names that this system has."""
    return [getattr(posix, name) for name in names if hasattr(posix, name)]
