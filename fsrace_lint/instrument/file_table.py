"""The open files and the locks of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.watched_tree import descriptor_path

if TYPE_CHECKING:
    import weakref

    from fsrace_lint.instrument.model import AdvisoryLock
    from fsrace_lint.instrument.watched_tree import WatchedTree


class OpenFileDescription:
    """An open file description: the state that its descriptors share.

    Attributes:
        number: A number that is unique in this process.
        flock: The lock that it holds, or None.
        descriptors: The number of its descriptors.
        is_nameless: Whether it was created without a name (`O_TMPFILE`).
        syncs: Whether every write is synced (`O_SYNC`).
        is_written: Whether data was written through it.
        failing: The injected error that all further reads ("read") or writes ("write") get.
    """

    def __init__(self, number: int, *, is_nameless: bool = False, syncs: bool = False) -> None:
        self.number = number
        self.is_nameless = is_nameless
        self.syncs = syncs
        self.flock: AdvisoryLock | None = None
        self.descriptors = 1
        self.is_written = False
        self.failing: dict[str, int] = {}


class FileTable:
    """The open files of a process in the watched tree.

    Args:
        tree: The watched tree.

    Attributes:
        tree: The watched tree.
        by_descriptor: The open files.
        streams: The file objects that `open()` returned for them.
        record_locks: The locks of `lockf()` and `fcntl()`, by inode.
        caches: Whether answers depend on what earlier calls have refreshed in the cache of a client.
        client: The number of this process as a client of an NFS server, where deleting an open file renames
            it and handles become stale; "" for any other filesystem.
        has_local_locks: Whether locks exclude no other process.
        hidden: The new paths of open files that this process has deleted, by inode.
    """

    def __init__(self, tree: WatchedTree) -> None:
        self.tree = tree
        self.by_descriptor: dict[int, OpenFileDescription] = {}
        self.streams: list[weakref.ref[Any]] = []
        self.record_locks: dict[int, AdvisoryLock] = {}
        self.caches = False
        self.client = ""
        self.has_local_locks = False
        self.hidden: dict[int, str] = {}
        self._opened = 0

    def opened(self, descriptor: int, *, is_nameless: bool = False, syncs: bool = False) -> None:
        """Add an open file."""
        self._opened += 1
        self.by_descriptor[descriptor] = OpenFileDescription(
            self._opened, is_nameless=is_nameless, syncs=syncs
        )

    def share(self, descriptor: int, new: int) -> None:
        """Add another descriptor of an open file."""
        if descriptor in self.by_descriptor and new != descriptor:
            self.by_descriptor[new] = self.by_descriptor[descriptor]
            self.by_descriptor[new].descriptors += 1

    def is_open(self, inode: int) -> bool:
        """Return whether this process has a file open."""
        return any(posix.fstat(descriptor).st_ino == inode for descriptor in self.by_descriptor)

    def new_hidden_name(self) -> str:
        """Return the name that an NFS client gives an open file instead of deleting it (silly rename)."""
        self._opened += 1
        return f".nfs{self.client}{self._opened:08x}"

    def shown(self, descriptor: int) -> str:
        """Return the display path of an open file."""
        if self.by_descriptor[descriptor].is_nameless:
            return "a file without a name"
        try:
            return self.tree.shown(descriptor_path(descriptor))
        except OSError:
            return f"descriptor {descriptor}"
