"""Jupyter Core: two processes write the same file with `secure_write()`, and one fails.

Promise: `secure_write()` writes files that multiple processes of a user share: the cookie secret,
connection files, and the token of the server. It skips "any issues with the file not existing".

Failure: The function deletes the file, creates it, and checks the mode of its path. A second process can
delete the path before the check, and `os.stat()` raises `FileNotFoundError`.

Harm: `jupyter server` fails at its start if another one starts at the same time, for example in a batch of
jobs that share a home directory.

Fix: Check the mode of the open file with `os.fstat()`.
"""

import os
import stat
from contextlib import contextmanager

from jupyter_core import paths


def broken(root, rank):
    """Write the cookie secret."""
    with paths.secure_write(str(root / "cookie_secret"), binary=True) as file:
        file.write(b"secret of this server")


@contextmanager
def secure_write(name, binary=False):
    """Write like `secure_write()`, with a check of the open file."""
    try:
        os.unlink(name)
    except OSError:
        pass
    descriptor = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb" if binary else "w") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) != 0o600:
            raise RuntimeError("Permissions assignment failed")
        yield file


def repaired(root, rank):
    """The same, with the fix."""
    paths.secure_write = secure_write
    broken(root, rank)
