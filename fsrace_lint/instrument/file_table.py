"""What a process has open, and which locks it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fsrace_lint.instrument.watched_tree import descriptor_path

if TYPE_CHECKING:
    import weakref

    from fsrace_lint.instrument.model import AdvisoryLock
    from fsrace_lint.instrument.watched_tree import WatchedTree


class OpenFileDescription:
    """An open file: what its descriptors share.

    Attributes:
        number: Tells it from the others of this process.
        flock: The lock that it holds, or None.
        descriptors: How many there are.
        is_nameless: Whether it was made without a name (`O_TMPFILE`).
    """

    def __init__(self, number: int, *, is_nameless: bool = False) -> None:
        self.number = number
        self.is_nameless = is_nameless
        self.flock: AdvisoryLock | None = None
        self.descriptors = 1


class FileTable:
    """What a process has open in the watched tree.

    Args:
        tree: Where its calls are watched.

    Attributes:
        by_descriptor: Its open files.
        streams: The file objects that `open` gave for them.
        record_locks: Its locks by `lockf` and `fcntl`, by inode.
    """

    def __init__(self, tree: WatchedTree) -> None:
        self.tree = tree
        self.by_descriptor: dict[int, OpenFileDescription] = {}
        self.streams: list[weakref.ref[Any]] = []
        self.record_locks: dict[int, AdvisoryLock] = {}
        self._opened = 0

    def opened(self, descriptor: int, *, is_nameless: bool = False) -> None:
        """Remember an open file."""
        self._opened += 1
        self.by_descriptor[descriptor] = OpenFileDescription(self._opened, is_nameless=is_nameless)

    def share(self, descriptor: int, new: int) -> None:
        """Remember that an open file has another descriptor."""
        if descriptor in self.by_descriptor and new != descriptor:
            self.by_descriptor[new] = self.by_descriptor[descriptor]
            self.by_descriptor[new].descriptors += 1

    def shown(self, descriptor: int) -> str:
        """Give the path of an open file as people read it."""
        if self.by_descriptor[descriptor].is_nameless:
            return "a file without a name"
        try:
            return self.tree.shown(descriptor_path(descriptor))
        except OSError:
            return f"descriptor {descriptor}"
