"""Where a path leads, and which names are read on the way there."""

from __future__ import annotations

import posix
import stat
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from fsrace_lint.explore.links import trail
from fsrace_lint.explore.messages import CallOutcome, Footprint, Held, Key, plain

if TYPE_CHECKING:
    from collections.abc import Callable


class ResolvedPlace(NamedTuple):
    """Where a path leads.

    Attributes:
        path: The path with no link left in it, but for the last name where it is not followed.
        entry: The directory's inode and the name in it.
        inode: The inode there, or 0.
        mode: Its mode, or 0.
    """

    path: str
    entry: tuple[int, str]
    inode: int
    mode: int

    @property
    def is_folder(self) -> bool:
        """Whether a directory is there."""
        return stat.S_ISDIR(self.mode)


class Recorder:
    """Collects what one call reads and changes.

    Args:
        top: The folder below which everything counts.
        now_at: Gives the absolute path of what a call was given, at this moment.
    """

    def __init__(self, top: str, now_at: Callable[[Any, int | None], str | None]) -> None:
        self._top = top
        self._now_at = now_at
        self.result = "done"
        self.made: list[int] = []
        self.seen: list[str] = []
        self.locks: list[Held] = []
        self.dirtied: list[int] = []
        self.synced: list[int] = []
        self.notes: list[str] = []
        self.unfollowed = False
        self._reads: dict[Key, None] = {}
        self._writes: dict[Key, None] = {}
        self._adds: dict[Key, None] = {}

    def outcome(self) -> CallOutcome:
        """Give what was collected."""
        return CallOutcome(
            plain(self.result),
            Footprint(list(self._reads), list(self._writes), list(self._adds)),
            self.made,
            [plain(path) for path in self.seen],
            self.locks,
            self.dirtied,
            self.synced,
            [plain(note) for note in self.notes],
            self.unfollowed,
        )

    def look(self, path: Any, dir_fd: int | None = None, *, follow: bool = True) -> ResolvedPlace:
        """Follow a path as the kernel does now, and remember every name that it reads.

        Args:
            path: As the call was given it.
            dir_fd: What it is relative to, where not to the working directory.
            follow: Whether a link at the end is followed.

        Returns:
            Where it leads; the last link where it leaves the top.
        """
        text = self._now_at(path, dir_fd) or self._top
        if text.endswith(("/", "/.")):
            place = self._follow(text, follow=True)
            return place if place.is_folder else place._replace(inode=0, mode=0)
        return self._follow(text, follow=follow)

    def _follow(self, path: str, *, follow: bool) -> ResolvedPlace:
        inodes = {self._top: posix.stat(self._top).st_ino}
        place = ResolvedPlace(self._top, (0, ""), inodes[self._top], stat.S_IFDIR)
        for here in trail(path, self._top, _said, follow=follow):
            if here == self._top:
                place = ResolvedPlace(here, (0, ""), inodes[here], stat.S_IFDIR)
                continue
            folder, _, name = here.rpartition("/")
            entry = (inodes[folder], name)
            self._reads["entry", entry[0], plain(name)] = None
            try:
                found = posix.lstat(here)
            except OSError:
                return ResolvedPlace(here, entry, 0, 0)
            inodes[here] = found.st_ino
            place = ResolvedPlace(here, entry, found.st_ino, found.st_mode)
        return place

    def probed(self, path: Any, dir_fd: int | None = None, *, follow: bool = True) -> None:
        """Note a question after what is there: its size, its mode and its times are part of the answer."""
        place = self.look(path, dir_fd, follow=follow)
        if place.inode:
            self.read_file(place.inode)
            self.counted_links(place.inode)

    def counted_links(self, inode: int) -> None:
        """Note that somebody looked at how many names a file has."""
        self._reads["links", inode, ""] = None

    def changed_links(self, place: ResolvedPlace) -> None:
        """Note that a file has another number of names."""
        if place.inode and not place.is_folder:
            self._writes["links", place.inode, ""] = None

    def read_file(self, inode: int) -> None:
        """Note that content or attributes were read."""
        self._reads["file", inode, ""] = None

    def wrote_file(self, inode: int) -> None:
        """Note that content or attributes were changed."""
        self._writes["file", inode, ""] = None

    def wrote_data(self, inode: int) -> None:
        """Note that content was changed; it is not on the disk yet."""
        self.wrote_file(inode)
        self.dirtied.append(inode)

    def listed(self, inode: int) -> None:
        """Note that the names in a directory were read."""
        self._reads["listing", inode, ""] = None

    def added(self, place: ResolvedPlace, inode: int) -> None:
        """Note a new name for a new inode."""
        self.changed(place)
        self.made.append(inode)

    def changed(self, place: ResolvedPlace) -> None:
        """Note that a name appeared, disappeared or stands for something else."""
        folder, name = place.entry
        self._writes["entry", folder, plain(name)] = None
        self._adds["listing", folder, ""] = None
        self.seen += [place.path, place.path.rpartition("/")[0] + "/"]

    def emptied(self, inode: int) -> None:
        """Note that a directory is gone: nothing can be made in it any more."""
        self._writes["listing", inode, ""] = None

    def locked(self, held: Held) -> None:
        """Note that a lock was taken or dropped; those that can be shared do not wait for each other."""
        (self._adds if held.shared else self._writes)["lock", held.inode, ""] = None
        self.locks.append(held)

    def tried_lock(self, inode: int) -> None:
        """Note that a lock was asked for and not had."""
        self._reads["lock", inode, ""] = None

    def did_anything(self, note: str) -> None:
        """Note a call whose doings are not known.

        Args:
            note: What to tell of it.
        """
        self._writes["world", 0, ""] = None
        self.notes.append(note)


def _said(path: str) -> str | None:
    try:
        return posix.readlink(path)
    except OSError:
        return None


def descriptor_path(descriptor: int) -> str:
    """Give the path of an open directory as it is now.

    Args:
        descriptor: What it is open as.

    Returns:
        The path.

    Raises:
        OSError: It has none.
    """
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  # elsewhere /proc tells it

        return fcntl.fcntl(descriptor, 50, bytes(1024)).rstrip(b"\0").decode()
    return posix.readlink(f"/proc/self/fd/{descriptor}")
