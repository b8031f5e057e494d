"""Django: `add()` of the file-based cache returns `True` to two processes.

Promise: The documentation of `cache.add()` says that it returns `True` "if the value was stored", and
`False` if the key exists. Code uses this as a lock. The cache writes to temporary files that it renames,
because multiple processes share it.

Failure: `FileBasedCache.add()` checks whether the key exists and then calls `set()`, which replaces the
file. Two processes that call it at the same time both find no file.

Harm: Both processes hold a lock that is based on `cache.add()`, and both do the work.

Fix: Write a temporary file and `os.link()` it to the name, because `os.link()` fails if the name exists.
"""

import os
import tempfile

from django.conf import settings

settings.configure(USE_TZ=True)

from django.core.cache.backends.base import DEFAULT_TIMEOUT  # noqa: E402  # needs the settings
from django.core.cache.backends.filebased import FileBasedCache  # noqa: E402


def work(cache, root):
    """Do some work if no other process does it."""
    if cache.add("lock", "taken"):
        os.mkdir(root / "the work")


def broken(root, rank):
    """Do some work once."""
    work(FileBasedCache(str(root / "cache"), {}), root)


class LinkingCache(FileBasedCache):
    """The cache with the fix."""

    def add(self, key, value, timeout=DEFAULT_TIMEOUT, version=None):
        """Store a value if the key does not exist."""
        self._createdir()
        if self.has_key(key, version):
            return False
        descriptor, temporary = tempfile.mkstemp(dir=self._dir)
        with open(descriptor, "wb") as file:
            self._write_content(file, timeout, value)
        try:
            os.link(temporary, self._key_to_file(key, version))
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)
        return True


def repaired(root, rank):
    """The same, with the fix."""
    work(LinkingCache(str(root / "cache"), {}), root)
