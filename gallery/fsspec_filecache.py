"""fsspec: a reader of `filecache` gets a file that another process downloads again.

Promise: The metadata file of the cache is written with `atomic_write()` and merged with the file on disk,
so that multiple processes can share a cache directory.

Failure: The data file is not protected. Its name is the hash of the URL, and a second process downloads
into the same file. It opens the file with `"wb"`, while the first process, whose download is complete,
opens it to read.

Harm: `open()` returns a truncated or empty file without an error.

Fix: Download to a temporary name in the same directory, and rename the file.
"""

import os

from fsspec.implementations.cached import WholeFileCacheFileSystem

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
    read(root, WholeFileCacheFileSystem)


class AtomicCache(WholeFileCacheFileSystem):
    """The cache with the fix."""

    def _get_cached_file_before_open(self, path, **kwargs):
        name = self._make_local_details(path)
        temporary = f"{name}.{os.getpid()}.part"
        self.fs.get_file(path, temporary)
        os.replace(temporary, name)
        self.save_cache()


def repaired(root, rank):
    """The same, with the fix."""
    read(root, AtomicCache)
