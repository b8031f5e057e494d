"""cachelib: `add()` of the file cache returns `True` to two processes.

Promise: `add()` does not "overwrite the values of already existing keys", and returns `False` for them. The
cache of Flask-Caching and Flask-Session is shared by all worker processes.

Failure: `FileSystemCache.add()` calls `os.path.exists()` and then `set()`, which replaces the file. Two
processes that call it at the same time both find no file.

Harm: Both processes get `True`, and the value of one is lost. Code that uses `add()` as a lock runs twice.

Fix: Write a temporary file and `os.link()` it to the name, because `os.link()` fails if the name exists.
"""

import os
import tempfile

from cachelib import FileSystemCache


def work(cache, root):
    """Do some work if no other process does it."""
    if cache.add("lock", "taken"):
        os.mkdir(root / "the work")


def setup(root):
    """A cache that earlier processes have used."""
    FileSystemCache(str(root / "cache")).set("other", 1)


def broken(root, rank):
    """Do some work once."""
    work(FileSystemCache(str(root / "cache")), root)


class LinkingCache(FileSystemCache):
    """The cache with the fix."""

    def add(self, key, value, timeout=None):
        """Store a value if the key does not exist."""
        name = self._get_filename(key)
        directory = tempfile.mkdtemp(dir=self._path, suffix=self._fs_transaction_suffix)
        private = FileSystemCache(directory, threshold=0)
        private.set(key, value, timeout)
        try:
            os.link(private._get_filename(key), name)
        except FileExistsError:
            return False
        return True


def repaired(root, rank):
    """The same, with the fix."""
    work(LinkingCache(str(root / "cache")), root)
