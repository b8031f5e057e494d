"""fsspec: a reader of `simplecache` gets a file that another process has not finished.

Promise: `SimpleCacheFileSystem` keeps no metadata. "It is therefore safer to use in
multi-threaded/concurrent situations."

Failure: The file is downloaded to its final name in the cache directory. A second process that uses the
same `cache_storage` finds the name, takes the file for complete, and reads it.

Harm: `open()` returns a truncated or empty file without an error. Workers that share a cache directory
train on, or parse, incomplete data.

Fix: Download to a temporary name in the same directory, and rename the file.
"""

import os

from fsspec.implementations.cached import SimpleCacheFileSystem

CONTENTS = b"all the data of the file"


def setup(root):
    """A file that stands for the remote one, and a cache directory."""
    (root / "remote").write_bytes(CONTENTS)
    (root / "cache").mkdir()


def read(root, kind):
    """Read the file through the cache."""
    filesystem = kind(target_protocol="file", cache_storage=str(root / "cache"), skip_instance_cache=True)
    with filesystem.open(str(root / "remote")) as file:
        found = file.read()
    assert found == CONTENTS, f"the cache returned {len(found)} of {len(CONTENTS)} bytes"


def broken(root, rank):
    """Read the file through the cache."""
    read(root, SimpleCacheFileSystem)


class AtomicCache(SimpleCacheFileSystem):
    """The cache with the fix."""

    def _get_cached_file_before_open(self, path, **kwargs):
        name = os.path.join(self.storage[-1], self._mapper(path))
        temporary = f"{name}.{os.getpid()}.part"
        self.fs.get_file(path, temporary)
        os.replace(temporary, name)


def repaired(root, rank):
    """The same, with the fix."""
    read(root, AtomicCache)
