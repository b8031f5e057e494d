"""lockfile: a process that waits for a lock fails when the lock is released.

Promise: `SymlinkLockFile` locks "access to a file using symlink(2)". `acquire()` without a timeout waits
until it has the lock.

Failure: If the link exists, the waiter checks whether it holds the lock itself: `os.path.islink()`, then
`os.readlink()`. The owner can delete the link in between, and `acquire()` raises `FileNotFoundError`.

Harm: A waiting process fails with an undocumented exception when the lock becomes free.

Fix: Treat a link that has vanished as one that belongs to another process.
"""

import os

from lockfile.symlinklockfile import SymlinkLockFile


def hold(lock):
    """Hold the lock for a moment."""
    lock.acquire()
    lock.release()


def broken(root, rank):
    """Hold the lock for a moment."""
    hold(SymlinkLockFile(str(root / "data"), threaded=False))


class CarefulLockFile(SymlinkLockFile):
    """The lock with the fix."""

    def i_am_locking(self):
        """Return whether this process holds the lock."""
        try:
            return os.readlink(self.lock_file) == self.unique_name
        except FileNotFoundError:
            return False


def repaired(root, rank):
    """The same, with the fix."""
    hold(CarefulLockFile(str(root / "data"), threaded=False))
