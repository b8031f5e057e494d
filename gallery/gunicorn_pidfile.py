"""gunicorn: two servers start at the same time, and both take the pid file.

Promise: `Pidfile.create()` raises `RuntimeError("Already running on PID ...")` if another server has the
pid file. The file is written to a temporary name and renamed, so that it is never incomplete.

Failure: `create()` checks the file, and renames its own over it afterwards. Two servers that start together
both find no file. The second one replaces the pid file of the first.

Harm: The first server runs without a pid file: `kill $(cat gunicorn.pid)` and service managers reach only
the second one.

Fix: Use `os.link()` instead of `os.rename()`, because it fails if the file exists.
"""

import os

from gunicorn import pidfile


def broken(root, rank):
    """Start a server, serve, and stop."""
    file = pidfile.Pidfile(str(root / "gunicorn.pid"))
    try:
        file.create(os.getpid())
    except (RuntimeError, FileExistsError):
        return
    os.mkdir(root / "a server runs")
    os.rmdir(root / "a server runs")
    file.unlink()


def link(source, target):
    """Move like `os.rename()`, but fail if the target exists."""
    os.link(source, target)
    os.unlink(source)


class OsWithLink:
    """The module `os` with the fix."""

    def __getattr__(self, name):
        return link if name == "rename" else getattr(os, name)


def repaired(root, rank):
    """The same, with the fix."""
    pidfile.os = OsWithLink()
    broken(root, rank)
