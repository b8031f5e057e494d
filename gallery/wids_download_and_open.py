"""wids: a process that is killed during a download leaves half a file, and later runs use it.

Promise: `download_and_open()` holds a lock, so that one process downloads and the others use the file. The
lock is `flock()`, which the kernel releases when a process is killed.

Failure: The function downloads to the final name. After a kill, the lock is free, and the name exists.
Later calls find the name and open it.

Harm: A shard of a data set stays truncated in the cache. Later jobs train on it or fail while reading it.

Fix: Download to a temporary name in the same directory, and rename the file.
"""

import os

from wids import wids_dl

CONTENTS = b"0123456789" * 100


def setup(root):
    """A shard on a file server."""
    (root / "remote.tar").write_bytes(CONTENTS)


def broken(root, rank):
    """Download the shard."""
    wids_dl.download_and_open(str(root / "remote.tar"), str(root / "local.tar")).close()


def check(root):
    """A later run gets the whole shard."""
    with wids_dl.download_and_open(str(root / "remote.tar"), str(root / "local.tar")) as file:
        found = file.read()
    assert found == CONTENTS, f"a later run gets {len(found)} of {len(CONTENTS)} bytes"


def download(remote, local, handlers=wids_dl.default_cmds, verbose=False):
    """Download like `download_file()`, in one step."""
    temporary = f"{local}.{os.getpid()}"
    wids_dl.download_file_no_log(remote, temporary, handlers)
    os.replace(temporary, local)


def repaired(root, rank):
    """The same, with the fix."""
    wids_dl.download_file = download
    broken(root, rank)
