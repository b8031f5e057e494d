"""kombu: a consumer takes a message that is not written yet, and the message is lost.

Promise: The transport lets multiple processes exchange messages through a directory, and locks the files of
messages and exchanges. `_get()` expects that a file "could be locked, or removed in meantime".

Failure: `_put()` creates the file of the message under its final name, locks it, and writes it. `_get()`
does not lock the file: it moves the file away and reads it. If it comes between the creation and the write,
it reads an empty file, and deletes it.

Harm: The consumer fails with `JSONDecodeError`, and the message is lost. With Celery, the task never runs.

Fix: Write the message under a name that consumers ignore, and rename it.
"""

import os
import queue

from kombu import Connection
from kombu.transport import filesystem

MESSAGE = {"body": "run the task"}


def channel(root):
    """A connection to the directory."""
    options = {"data_folder_in": str(root / "queue"), "data_folder_out": str(root / "queue")}
    options["control_folder"] = str(root / "control")
    return Connection("filesystem://", transport_options=options).channel()


def setup(root):
    """An empty queue."""
    (root / "queue").mkdir()


def broken(root, rank):
    """Process 0 sends a message; process 1 gets it if it is there."""
    if rank == 0:
        channel(root)._put("tasks", MESSAGE)
        return
    try:
        assert channel(root)._get("tasks") == MESSAGE
    except queue.Empty:
        pass


def put(self, name, payload, **options):
    """Send a message like `Channel._put()`, in one step."""
    final = os.path.join(self.data_folder_out, f"{os.getpid()}.{name}.msg")
    with open(f"{final}.new", "w") as file:
        file.write(filesystem.dumps(payload))
    os.rename(f"{final}.new", final)


def repaired(root, rank):
    """The same, with the fix."""
    filesystem.Channel._put = put
    broken(root, rank)
