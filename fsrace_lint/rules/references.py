"""What rules rest on: weaknesses, and what systems and libraries promise."""

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
"""The weaknesses, as the Common Weakness Enumeration titles them."""


class Promise(enum.Enum):
    """What a system or a library promises, with its source; `RULE` names those that its hazard rests on."""

    MKDIR = "mkdir(2) makes the directory or fails with EEXIST, in one step"
    EXCL = "open(2) with O_CREAT and O_EXCL makes the file or fails with EEXIST, in one step"
    TRUNC = "open(2) with O_TRUNC empties the file at once, before anything is written or locked"
    SYMLINK = "symlink(2) fails with EEXIST where the name is taken"
    RENAME = "rename(2) puts the new file in the place of the old one in one step"
    EXDEV = "rename(2) fails with EXDEV where the two paths are on different filesystems"
    UNLINK = "unlink(2) fails with ENOENT where the file is gone"
    OPEN = "unlink(2) takes a name away; the file stays for those who have it open"
    FLOCK = "flock(2) locks an open file and not its name, and only keeps out those who lock too"
    NFS = "nfs(5): a client may answer from the attributes and names that it remembers"
    TMP = "hier(7): /tmp and the like belong to one machine"
    COLLECTIVE = "torch.distributed: a collective returns when every process of the group has called it"
    GROUP = "torch.distributed: there is no rank before init_process_group"
    SLEEP = "nanosleep(2) waits for time to pass, and for no other process"
    MKTEMP = "Python, tempfile.mktemp: another process can take the name first"
    HASH = "Python, object.__hash__: the hash of a text differs from one interpreter to the next"
    CALL = "Python, calls: all arguments are evaluated before the call"
    WITH = "Python, the with statement: a context manager does its work in __enter__ and __exit__"
    BUFFER = "Python, io: what is written waits in a buffer until it is flushed or closed"
    RMTREE = "Python, shutil.rmtree removes entry by entry, and others can come in between"
    DOWNLOAD = "Python, urllib.request.urlretrieve writes to the final name as the data comes"
    TAR = "Python, tarfile and zipfile write each member to its final name"
    CLOCK = "clock_gettime(2) tells each process the time at which it asks"
