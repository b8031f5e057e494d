"""Records what a call reads and changes while it runs."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from fsrace_lint.instrument.kernel import posix
from fsrace_lint.instrument.model import WORLD, CallOutcome, Footprint, plain
from fsrace_lint.instrument.path_resolution import trail
from fsrace_lint.instrument.watched_tree import ResolvedPath

if TYPE_CHECKING:
    from fsrace_lint.instrument.model import AdvisoryLock, Key
    from fsrace_lint.instrument.watched_tree import Path, WatchedTree


class Recorder:
    """Records what one call reads and changes.

    Args:
        tree: The watched tree.

    Attributes:
        modified: Paths and descriptors that the call modified, so that the kernel changed their timestamps.
        mapped: Inodes of files that the call mapped into memory for reading.
        leaves: Whether a path of the call follows a link that leads out of the tree.
    """

    def __init__(self, tree: WatchedTree) -> None:
        self._tree = tree
        self.result = "done"
        self.created: list[int] = []
        self.seen: list[str] = []
        self.acquired: list[AdvisoryLock] = []
        self.released: list[AdvisoryLock] = []
        self.dirtied: list[int] = []
        self.synced: list[int] = []
        self.lost: list[int] = []
        self.unobserved: list[str] = []
        self.refreshed: list[int] = []
        self.modified: list[str | int] = []
        self.mapped: list[int] = []
        self.leaves = False
        self._reads: dict[Key, None] = {}
        self._writes: dict[Key, None] = {}
        self._adds: dict[Key, None] = {}

    def outcome(self) -> CallOutcome:
        """Return the recorded outcome."""
        return CallOutcome(
            plain(self.result),
            Footprint(tuple(self._reads), tuple(self._writes), tuple(self._adds)),
            tuple(self.created),
            tuple(map(plain, self.seen)),
            tuple(self.acquired),
            tuple(self.released),
            tuple(self.dirtied),
            tuple(self.synced),
            tuple(self.unobserved),
            tuple(self.mapped),
            tuple(self.refreshed),
            tuple(self.lost),
        )

    @property
    def is_opaque(self) -> bool:
        """Whether the call can do anything."""
        return WORLD in self._writes

    def happens_unseen(self) -> None:
        """Record that the call can do anything."""
        self._writes[WORLD] = None

    def resolve(self, path: Path, dir_fd: int | None = None, *, follow: bool = True) -> ResolvedPath:
        """Resolve a path as the kernel does now, and record every name that is read.

        Args:
            path: The path as the caller wrote it.
            dir_fd: The descriptor of the directory that it is relative to, if not the working directory.
            follow: Whether to follow a link at the end.

        Returns:
            The resolved path, or the last link if the path leaves the tree.
        """
        text = self._tree.place(path, dir_fd) or self._tree.top
        if text.endswith(("/", "/.")):
            place = self._follow(text, follow=True)
            return place if place.is_folder else place._replace(inode=0, mode=0)
        return self._follow(text, follow=follow)

    def _follow(self, path: str, *, follow: bool) -> ResolvedPath:
        top = self._tree.top
        inodes = {top: posix.stat(top).st_ino}
        place = ResolvedPath(top, (0, ""), inodes[top], stat.S_IFDIR)
        for here in trail(path, top, _said, follow=follow):
            if not here:
                self.leaves = True
                break
            if here == top:
                place = ResolvedPath(here, (0, ""), inodes[here], stat.S_IFDIR)
                continue
            folder, _, name = here.rpartition("/")
            entry = (inodes[folder], name)
            self._reads["entry", entry[0], plain(name)] = None
            try:
                found = posix.lstat(here)
            except OSError:
                return ResolvedPath(here, entry, 0, 0)
            inodes[here] = found.st_ino
            place = ResolvedPath(here, entry, found.st_ino, found.st_mode)
        return place

    def looked_up(self, path: Path, dir_fd: int | None = None, *, follow: bool = True) -> None:
        """Record a lookup whose answer includes size, mode, and timestamps."""
        place = self.resolve(path, dir_fd, follow=follow)
        if place.inode:
            self.reads("file", place.inode)
            self.reads("links", place.inode)

    def reads(self, kind: str, inode: int, name: str = "") -> None:
        """Record that something was read; the parameters are the parts of a `Key`."""
        self._reads[kind, inode, name] = None

    def writes(self, kind: str, inode: int, name: str = "") -> None:
        """Record that something was changed; the parameters are the parts of a `Key`."""
        self._writes[kind, inode, name] = None

    def refreshed_cache(self, inode: int, *, is_folder: bool = False) -> None:
        """Record that a network filesystem asked the server for the current attributes and data of a file."""
        self.reads("file", inode)
        if is_folder:
            self.reads("listing", inode)
        self.refreshed.append(inode)

    def changed_links(self, place: ResolvedPath) -> None:
        """Record that the number of names of a file changed."""
        if place.inode and not place.is_folder:
            self.writes("links", place.inode)

    def wrote_data(self, inode: int) -> None:
        """Record that contents changed, and are not on the disk yet."""
        self.writes("file", inode)
        self.dirtied.append(inode)

    def added_entry(self, place: ResolvedPath, inode: int) -> None:
        """Record a new name of a new inode."""
        self.changed_entry(place)
        self.created.append(inode)

    def changed_entry(self, place: ResolvedPath) -> None:
        """Record that a name appeared, disappeared, or refers to another inode."""
        folder, name = place.entry
        self._writes["entry", folder, plain(name)] = None
        self._adds["listing", folder, ""] = None
        self.seen += [place.path, place.path.rpartition("/")[0] + "/"]

    def took_lock(self, lock: AdvisoryLock) -> None:
        """Record that a lock was acquired."""
        self.changed_lock(lock)
        self.acquired.append(lock)

    def dropped_lock(self, lock: AdvisoryLock) -> None:
        """Record that a lock was released."""
        self.changed_lock(lock)
        self.released.append(lock)

    def changed_lock(self, lock: AdvisoryLock) -> None:
        """Record that a lock was acquired, released, or both."""
        # shared locks do not wait for each other
        (self._adds if lock.shared else self._writes)[lock.key] = None


def _said(path: str) -> str | None:
    try:
        return posix.readlink(path)
    except OSError:
        return None
