"""luigi: two instances of a command start at the same time, and both get the lock.

Promise: `acquire_for()` "makes sure the process is only run once at the same time with the same name". It
is the lock of the `luigi` command.

Failure: The function reads the pids in the pid file, and then writes the file. Two processes that start
together both read an empty set, and both write their own pid.

Harm: Two instances of one workflow run and write the same outputs.

Fix: Hold `fcntl.flock()` on the pid file's directory from the read to the write.
"""

import fcntl
import os

from luigi import lock

# both processes run the same command, and neither of them has ended
lock.getpcmd = lambda pid: "luigi MyTask"


def broken(root, rank):
    """Start an instance."""
    if lock.acquire_for(str(root / "pids")):
        (root / f"instance {rank} runs").touch()


def check(root):
    """At most one instance runs."""
    found = sorted(path.name for path in root.glob("instance*"))
    assert len(found) < 2, f"{' and '.join(found)}"


def repaired(root, rank):
    """The same, with the fix."""
    os.makedirs(root / "pids", exist_ok=True)
    descriptor = os.open(root / "pids", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    broken(root, rank)
    os.close(descriptor)
