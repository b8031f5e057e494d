"""TensorBoard: listing the running servers fails while one of them stops.

Promise: `get_all()` "may not provide a perfect snapshot of the set of running processes", and ignores
entries that are not valid. Each server creates and deletes its own file in a directory that all processes
of the machine share.

Failure: The function lists the directory and then opens each file. A server that stops in between deletes
its file, and the `FileNotFoundError` is raised.

Harm: `%tensorboard` in a notebook and `tensorboard.notebook.list()` fail because an unrelated server
stopped.

Fix: Skip files that do not exist anymore.
"""

import errno

from tensorboard import manager

INFO = manager.TensorBoardInfo(
    version="2.21.0", start_time=0, pid=1, port=6006, path_prefix="", logdir="logs", db="", cache_key="key"
)


def broken(root, rank):
    """Process 0 is a server that starts and stops; process 1 lists the servers."""
    if rank == 0:
        manager.write_info_file(INFO)
        manager.remove_info_file()
    else:
        manager.get_all()


def open_existing(path, *args, **options):
    """Open like `open()`, but report a missing file as one to be skipped."""
    try:
        return open(path, *args, **options)
    except FileNotFoundError as error:
        raise OSError(errno.EACCES, "skipped") from error


def repaired(root, rank):
    """The same, with the fix: `get_all()` skips files with `EACCES` already."""
    manager.open = open_existing
    broken(root, rank)
