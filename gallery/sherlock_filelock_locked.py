"""sherlock: asking whether a lock is held fails when the lock is released.

Promise: `FileLock.locked()` returns whether any process holds the lock. The read of the data file is
protected by a second lock.

Failure: The function checks that the data file exists before it takes the second lock. The owner can
release the lock in between, which deletes the file, and `locked()` raises `FileNotFoundError`. `release()`
has the same check.

Harm: A process that only asks fails with `FileNotFoundError`.

Fix: Check that the file exists while holding the second lock.
"""

import json
import pathlib

from sherlock import FileLock

OWNER = "process 1"


def setup(root):
    """A lock that process 1 has acquired."""
    (root / "job.json").write_text(json.dumps({"owner": OWNER, "expiry_time": "9999-01-01T00:00:00+00:00"}))


def ask(root, rank, kind):
    """Process 1 releases its lock; process 0 asks whether it is held."""
    lock = kind("job", client=pathlib.Path(root))
    if rank == 1:
        lock._owner = OWNER
        lock.release()
    else:
        lock.locked()


def broken(root, rank):
    """Ask whether the lock is held."""
    ask(root, rank, FileLock)


class CarefulLock(FileLock):
    """The lock with the fix."""

    @property
    def _locked(self):
        with self._lock_file:
            return super()._locked


def repaired(root, rank):
    """The same, with the fix; `filelock` locks can be acquired twice by their owner."""
    ask(root, rank, CarefulLock)
