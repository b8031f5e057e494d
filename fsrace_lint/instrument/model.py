"""The data model of filesystem calls."""

from __future__ import annotations

from typing import Final, NamedTuple

Key = tuple[str, int, str]
"""Something that a call can read or change.

One of ("entry", directory, name), ("listing", directory, ""), ("file", inode, ""), ("links", inode, ""),
("lock", inode, ""), ("lock", inode, "write"), or ("world", 0, ""), which is everything. Directories and files
are inode numbers of the kernel.

Processes have keys too. ("process", process id, node) changes when the process starts and ends. ("processes",
0, node) changes when any process of the node does, and ("victim", process id, node) when it is killed by
another process.
"""
WORLD: Final[Key] = ("world", 0, "")
EVERY_FILE: Final = 0
"""Stands for the inodes of all files."""
PROCESSES: Final = frozenset({"process", "processes", "victim"})
"""The kinds of keys that are about processes."""


class Footprint(NamedTuple):
    """What one call read and changed.

    Two calls of different processes commute unless one writes what the other reads or changes. `adds` are
    changes that commute with each other, such as two new names in one directory.
    """

    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()
    adds: tuple[Key, ...] = ()


class AdvisoryLock(NamedTuple):
    """A lock on a file.

    Attributes:
        kind: The call that acquires it: "flock" or "lockf". The two kinds do not conflict, as on Linux. A
            "write" lock is the kernel's own, which excludes other writers during one write.
        inode: The file, or 0 if `path` names it.
        owner: The number of the open file description that owns it, or 0 if the process owns it.
        shared: Whether other owners can share it.
        path: The file, if the call looks it up by itself.
    """

    kind: str
    inode: int
    owner: int
    shared: bool
    path: str = ""

    @property
    def key(self) -> Key:
        """The key of the lock in a footprint."""
        return "lock", self.inode, "write" if self.kind == "write" else ""


class Lookup(NamedTuple):
    """A question that a client of a network filesystem can answer from its cache.

    Attributes:
        kind: "stat", "listdir", a test of `os.path`, or "fstat", "read", "write" of an open file.
        path: The path, if it is about a path.
        inode: The file, if it is open.
    """

    kind: str
    path: str
    inode: int = 0


class Answer(NamedTuple):
    """The result of a lookup instead of the true one.

    Attributes:
        there: Whether the file exists; an open file that does not has a stale handle (`ESTALE`).
        stat: Its status.
        names: The names and types in a directory.
        data: The contents of an open file.
    """

    there: bool
    stat: tuple[float, ...] = ()
    names: tuple[tuple[str, int], ...] = ()
    data: bytes = b""


class CallOutcome(NamedTuple):
    """The outcome of a call.

    Attributes:
        result: The result, for display.
        footprint: What the call read and changed.
        created: Inodes that were created.
        seen: Paths that were opened, or changed under this name. A trailing slash means only the names in the
            directory.
        acquired: Locks that were acquired.
        released: Locks that were released, before others were acquired.
        dirtied: Inodes with new data that is not on the disk yet.
        synced: Files and directories that were synced to the disk, or `EVERY_FILE`.
        unobserved: What can happen unobserved from now on, for display.
        mapped: Inodes that were mapped into memory for reading, which has no calls.
        refreshed: Files whose data a client does not take from its cache: they were opened or locked.
        lost: Inodes whose unsynced data may never reach the disk, because a sync failed.
    """

    result: str
    footprint: Footprint
    created: tuple[int, ...] = ()
    seen: tuple[str, ...] = ()
    acquired: tuple[AdvisoryLock, ...] = ()
    released: tuple[AdvisoryLock, ...] = ()
    dirtied: tuple[int, ...] = ()
    synced: tuple[int, ...] = ()
    unobserved: tuple[str, ...] = ()
    mapped: tuple[int, ...] = ()
    refreshed: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


def plain(text: str) -> str:
    """Return a text in which undecodable bytes of file names are backslash escapes."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
