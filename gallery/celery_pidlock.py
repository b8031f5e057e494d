"""celery: a starting process deletes the pid file of a running one, because it is still empty.

Promise: "If the pidfile already exists the program exits with an error message". `celery beat` and `celery
worker` use `create_pidlock()` so that only one process runs.

Failure: `write_pid()` creates the file exclusively and writes the pid afterwards. A second process that
starts in between reads an empty file, prints "Broken pidfile found - Removing it.", deletes it, and creates
its own. The first process has the file open, and its final check can run before the deletion.

Harm: Two `celery beat` processes run, and every scheduled task is sent twice.

Fix: Write the pid to a temporary file and `os.link()` it to the name, so that the pid file is never
incomplete.
"""

import os
import tempfile

from celery import platforms


def broken(root, rank):
    """Start, run, and stop a service that must run once."""
    try:
        lock = platforms._create_pidlock(str(root / "beat.pid"))
    except (SystemExit, platforms.LockFailed):
        return
    os.mkdir(root / "a beat is running")
    os.rmdir(root / "a beat is running")
    lock.release()


def write_pid(self):
    """Write the pid file like `Pidfile.write_pid()`, in one step."""
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(self.path))
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{os.getpid()}\n")
    try:
        os.link(temporary, self.path)
    finally:
        os.unlink(temporary)


def repaired(root, rank):
    """The same, with the fix."""
    platforms.Pidfile.write_pid = write_pid
    broken(root, rank)
