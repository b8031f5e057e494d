"""The references of rules: CWE entries, and guarantees of operating systems and libraries."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CWES: Final[Mapping[int, str]] = {
    362: "Concurrent Execution using Shared Resource with Improper Synchronization ('Race Condition')",
    367: "Time-of-check Time-of-use (TOCTOU) Race Condition",
    377: "Insecure Temporary File",
    667: "Improper Locking",
    833: "Deadlock",
}
"""The titles of CWE entries, by number."""


class Promise(enum.Enum):
    """A documented guarantee of an operating system or a library, with its source."""

    MKDIR = "mkdir(2) creates the directory or fails with `EEXIST`, atomically"
    EXCL = "open(2) with `O_CREAT` and `O_EXCL` creates the file or fails with `EEXIST`, atomically"
    TRUNC = "open(2) with `O_TRUNC` truncates the file at once, before the process writes or locks it"
    SYMLINK = "symlink(2) fails with `EEXIST` if the name exists"
    RENAME = "rename(2) replaces an existing file atomically"
    EXDEV = "rename(2) fails with `EXDEV` if the two paths are on different filesystems"
    UNLINK = "unlink(2) fails with `ENOENT` if the file does not exist"
    OPEN = "unlink(2) removes the name; the file remains for processes that have it open"
    FLOCK = "flock(2) locks an open file, not its name, and excludes only processes that also lock it"
    NFS = "nfs(5): a client can answer from cached attributes and directory entries"
    TMP = "hier(7): /tmp and similar directories belong to one machine"
    COLLECTIVE = "torch.distributed: a collective completes only when every rank of the group calls it"
    GROUP = "torch.distributed: a process has no rank before `init_process_group()`"
    SLEEP = "nanosleep(2) waits for time to pass, not for another process"
    MKTEMP = "Python, `tempfile.mktemp()`: another process can create a file with the returned name first"
    HASH = "Python, `object.__hash__()`: the hash of a string differs between interpreter processes"
    CALL = "Python, calls: all arguments are evaluated before the call"
    WITH = "Python, with statement: a context manager does its work in `__enter__()` and `__exit__()`"
    BUFFER = "Python, io: written data stays in a buffer until the file is flushed or closed"
    RMTREE = "Python, `shutil.rmtree()` deletes the entries one at a time, not atomically"
    DOWNLOAD = "Python, `urllib.request.urlretrieve()` writes to the final path during the download"
    TAR = "Python, tarfile and zipfile write each extracted member to its final path"
    CLOCK = "`clock_gettime(2)` returns the time of the call, so processes get different times"
