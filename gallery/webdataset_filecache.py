"""webdataset: the clean-up of one worker deletes the file that another worker downloads.

Promise: `FileCache(cache_size=...)` is used by all workers of a data loader. Its downloads go to a
temporary file that is renamed, and its clean-up expects that "files may be deleted by other processes".

Failure: `LRUCleanup` counts and deletes all files of the cache directory, and the temporary files of other
workers are among them. The download that is interrupted in this way fails in `os.rename()`.

Harm: A worker fails with `FileNotFoundError` if the shards that all workers download at one moment do not
fit in the cache, for example at the start of an epoch.

Fix: Do not delete files that are younger than a few minutes.
"""

import importlib
import io
import os
import tarfile
import time

import webdataset.cache
from webdataset.cache import FileCache, LRUCleanup


def shard():
    """The bytes of a shard, which the server sends."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("sample.txt"))
    return buffer.getvalue()


SHARD = shard()
# a server that needs no network
importlib.import_module("webdataset.gopen").gopen_schemes["http"] = lambda url, *_, **__: io.BytesIO(SHARD)


def setup(root):
    """An empty cache directory."""
    (root / "cache").mkdir()


def broken(root, rank):
    """Each worker gets a shard of its own."""
    FileCache(str(root / "cache"), cache_size=len(SHARD) // 2).get_file(f"http://server/shard-{rank}.tar")


def young(path):
    """Return whether another worker may be using a file."""
    return time.time() - os.path.getmtime(path) < 300


class CarefulCleanup(LRUCleanup):
    """The clean-up with the fix."""

    def cleanup(self):
        """Delete the oldest files, but no young ones."""
        walk = os.walk
        webdataset.cache.os.walk = lambda top: (
            (folder, folders, [name for name in files if not young(os.path.join(folder, name))])
            for folder, folders, files in walk(top)
        )
        super().cleanup()
        webdataset.cache.os.walk = walk


def repaired(root, rank):
    """The same, with the fix."""
    webdataset.cache.LRUCleanup = CarefulCleanup
    broken(root, rank)
