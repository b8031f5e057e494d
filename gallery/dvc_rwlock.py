"""dvc: a process that is killed while it updates the lock file breaks all later commands.

Promise: The lock file of `rwlock()` has the pid of each process that holds a lock, and later commands
remove the entries of processes that "had been killed".

Failure: `_edit_rwlock()` opens the file with `"w"` and writes JSON into it. A kill between these calls
leaves an empty file, and the JSON of an empty file is invalid.

Harm: Every later `dvc` command in the repository fails with `RWLockFileCorruptedError` until the file is
deleted by hand.

Fix: Write to a temporary file and rename it.
"""

import json
import os
from collections import defaultdict
from contextlib import contextmanager

from dvc import rwlock
from dvc.fs import localfs
from tqdm import tqdm

# no thread that watches progress bars
tqdm.monitor_interval = 0


def broken(root, rank):
    """Run a command that writes one output."""
    with rwlock.rwlock(str(root), localfs, "dvc repro", [], ["output"], hardlink=False):
        pass


def check(root):
    """A later command runs."""
    broken(root, 0)


@contextmanager
def edit(lock_dir, fs, hardlink):
    """Edit the file like `_edit_rwlock()`, in one step."""
    path = fs.join(lock_dir, rwlock.RWLOCK_FILE)
    with rwlock.make_lock(fs.join(lock_dir, rwlock.RWLOCK_LOCK), tmp_dir=lock_dir, hardlink_lock=hardlink):
        try:
            with fs.open(path, encoding="utf-8") as file:
                lock = rwlock.SCHEMA(json.load(file))
        except FileNotFoundError:
            lock = rwlock.SCHEMA({})
        lock["read"] = defaultdict(list, lock["read"])
        lock["write"] = defaultdict(dict, lock["write"])
        yield lock
        with fs.open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(lock, file)
        os.replace(path + ".tmp", path)


def repaired(root, rank):
    """The same, with the fix."""
    rwlock._edit_rwlock = edit
    broken(root, rank)
