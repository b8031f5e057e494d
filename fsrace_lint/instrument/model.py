"""What is known of a call on the filesystem, as plain data."""

from __future__ import annotations

from typing import Final, NamedTuple

Key = tuple[str, int, str]
"""What a call can read or change: ("entry", directory, name), ("listing", directory, ""), ("file", inode,
""), ("links", inode, ""), ("lock", inode, ""), or ("world", 0, ""), which is everything. Directories and
files are inodes: numbers as the kernel gives them."""
WORLD: Final[Key] = ("world", 0, "")


class Footprint(NamedTuple):
    """What one call read and changed.

    Two calls of different processes can be swapped unless one writes what the other reads or changes.
    `adds` are changes that can be swapped with each other: two names that appear in one directory.
    """

    reads: tuple[Key, ...] = ()
    writes: tuple[Key, ...] = ()
    adds: tuple[Key, ...] = ()


class AdvisoryLock(NamedTuple):
    """A lock on a file.

    Attributes:
        kind: The call that takes it: "flock" or "lockf". The two do not see each other, as on Linux.
        inode: The file.
        owner: The number of the open file that it belongs to, or 0 where it is the process's.
        shared: Whether others can share it.
    """

    kind: str
    inode: int
    owner: int
    shared: bool


class Lookup(NamedTuple):
    """A question after what a path leads to: by `stat`, `listdir`, or a test of `os.path`."""

    kind: str
    path: str


class Answer(NamedTuple):
    """What a lookup is told in place of the truth: of a file its stat, of a directory names and types."""

    there: bool
    stat: tuple[float, ...] = ()
    names: tuple[tuple[str, int], ...] = ()


class CallOutcome(NamedTuple):
    """What came of a call.

    Attributes:
        result: In words.
        footprint: What it read and changed.
        created: Inodes that came into being.
        seen: Paths that were opened, or changed by this name. One with a slash at its end stands for the
            names in a directory only.
        acquired: Locks taken.
        released: Locks dropped, before others were taken.
        dirtied: Inodes whose data changed, and is not on the disk yet.
        synced: Inodes whose data reached the disk.
        unobserved: What can happen unseen from now on, in words.
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


def plain(text: str) -> str:
    """Spell out what is no text, as it comes in names of files."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
