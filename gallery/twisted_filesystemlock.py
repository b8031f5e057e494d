"""Twisted: two processes recover a stale lock, and both hold it.

Promise: `FilesystemLock` is a "filesystem-based interprocess mutex". It recovers a lock whose owner has
died.

Failure: Both processes read the pid of the dead owner. One deletes the link and creates its own. The other
then deletes the link that it takes for the stale one, and creates its own too.

Harm: Two processes hold the mutex after a crash.

Fix: Hold `fcntl.flock()` on a second file while the owner is checked and the stale link is deleted.
"""

import fcntl
import os

from twisted.python.lockfile import FilesystemLock

DEAD = 4_900_000
"""A process id above the maximum of the kernel."""


def setup(root):
    """The lock of a process that has died."""
    (root / "mutex").symlink_to(str(DEAD))


def hold(root, lock):
    """Hold the lock for a moment, if it is free."""
    if lock.lock():
        os.mkdir(root / "held")
        os.rmdir(root / "held")
        lock.unlock()


def broken(root, rank):
    """Hold the lock for a moment."""
    hold(root, FilesystemLock(str(root / "mutex")))


class GuardedLock(FilesystemLock):
    """The lock with the fix."""

    def lock(self):
        """Acquire the lock like `FilesystemLock.lock()`, one process at a time."""
        with open(self.name + ".guard", "a") as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            return super().lock()


def repaired(root, rank):
    """The same, with the fix."""
    hold(root, GuardedLock(str(root / "mutex")))
