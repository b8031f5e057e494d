"""tendo: a process that ends deletes the lock file of the instance that has just started.

Promise: `SingleInstance` "can be instantiated only once per machine". It "is very useful if you have
scripts executed by crontab".

Failure: `__del__()` unlocks the file and then deletes it. In between, the next instance can open and lock
the file. Its lock is then on a file without a name, and a further instance creates a new file and locks
that.

Harm: Two instances of a script run at the same time.

Fix: Do not delete the lock file.
"""

import fcntl
import os

from tendo import singleton


def script(root, kind):
    """Run a script that may run only once at a time."""
    try:
        instance = kind(lockfile=str(root / "script.lock"))
    except singleton.SingleInstanceException:
        return
    os.mkdir(root / "an instance runs")
    os.rmdir(root / "an instance runs")
    instance.__del__()
    instance.initialized = False


def broken(root, rank):
    """Process 0 stands for two runs of the script, one after the other; process 1 for one."""
    for _ in range(2 - rank):
        script(root, singleton.SingleInstance)


class PersistentFile(singleton.SingleInstance):
    """The lock with the fix."""

    def __del__(self):
        if self.initialized:
            fcntl.lockf(self.fp, fcntl.LOCK_UN)


def repaired(root, rank):
    """The same, with the fix."""
    for _ in range(2 - rank):
        script(root, PersistentFile)
