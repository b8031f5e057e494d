"""A call that is about to be made, and who decides how."""

from __future__ import annotations

import posix
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fsrace_lint.instrument.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.instrument.file_table import FileTable
    from fsrace_lint.instrument.model import AdvisoryLock, Answer, Lookup
    from fsrace_lint.instrument.watched_tree import Path

T = TypeVar("T")


@dataclass(eq=False)
class FilesystemCall(Generic[T]):
    """A call that is about to be made.

    Attributes:
        name: Such as "mkdir".
        target: What it is about, in words.
        act: Makes the call, and notes what it reads and changes.
        recorder: Where that is noted.
        mutates: Whether it can change anything.
        lookup: What it asks, where an answer can be given in place of the truth.
        lock: The lock that it waits for.
    """

    name: str
    target: str
    act: Callable[[Recorder, Answer | None], T]
    recorder: Recorder
    mutates: bool = True
    lookup: Lookup | None = None
    lock: AdvisoryLock | None = None

    def run(self, answer: Answer | None = None) -> T:
        """Make the call; its recorder then has what came of it.

        Args:
            answer: What a lookup is told in place of the truth.

        Returns:
            What the call gives.
        """
        try:
            return self.act(self.recorder, answer)
        except OSError as error:
            self.recorder.result = type(error).__name__
            raise


class Interceptor(Protocol):
    """Stands between a program and its calls.

    Attributes:
        waits_for_locks: Whether a call waits in the kernel for a lock that is held, or fails.
        sorts_names: Whether names in a directory come sorted, and not as the kernel gives them.
    """

    waits_for_locks: bool
    sorts_names: bool

    def is_active(self) -> bool:
        """Tell whether calls made now are intercepted: not those that a call makes itself."""

    def intercept(self, call: FilesystemCall[T]) -> T:
        """Run a call when its time has come, and give what it gives."""


class Calls:
    """Calls of one kind, each of them intercepted.

    Args:
        interceptor: By whom.
        files: What the process has open.
    """

    def __init__(self, interceptor: Interceptor, files: FileTable) -> None:
        self._interceptor = interceptor
        self._files = files
        self._tree = files.tree

    def replacements(self) -> dict[Any, Any]:
        """Give what replaces what."""
        raise NotImplementedError

    def _place(self, path: Path, dir_fd: int | None = None) -> str | None:
        """Give the absolute path where a call is to be intercepted, which may hold links and dots."""
        return self._tree.place(path, dir_fd) if self._interceptor.is_active() else None

    def _is_watched(self, descriptor: int) -> bool:
        return self._interceptor.is_active() and descriptor in self._files.by_descriptor

    def _intercept(
        self,
        name: str,
        target: str,
        act: Callable[[Recorder, Answer | None], T],
        *,
        mutates: bool = True,
        lookup: Lookup | None = None,
        lock: AdvisoryLock | None = None,
    ) -> T:
        recorder = Recorder(self._tree)
        return self._interceptor.intercept(FilesystemCall(name, target, act, recorder, mutates, lookup, lock))


def available(*names: str) -> list[Callable[..., Any]]:
    """Give functions of `os` by their names, as far as this system has them."""
    return [getattr(posix, name) for name in names if hasattr(posix, name)]
