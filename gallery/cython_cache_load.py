"""Cython: a build fails because another one evicts the cached file that it is about to use.

Promise: The cache of `cythonize(cache=True)` is shared by all builds of a user. The clean-up handles files
that were "removed concurrently", and the lookup is a "single OS call to avoid races between check and time
update".

Failure: `cythonize()` looks a file up and then loads it. Another build whose clean-up deletes the file in
between makes `load_from_cache()` fail with `FileNotFoundError`. The file is only a cache, and compiling
again would be possible.

Harm: A build fails whenever the cache is full and another build cleans it up at the wrong moment.

Fix: Compile if the cached file has vanished.
"""

import gzip

from Cython.Build.Cache import Cache


def setup(root):
    """A cache with one file."""
    (root / "cache").mkdir()
    with gzip.open(root / "cache" / "module.c-1f2e.gz", "wt") as file:
        file.write("int x;\n")


def build(root, rank, errors):
    """Process 0 uses the cached file as `cythonize()` does; process 1 cleans up a cache that is full."""
    cache = Cache(str(root / "cache"), cache_size=1)
    if rank == 1:
        total, files = cache._list_cache_files()
        cache._delete_cache_files(files, total, 0)
        return
    target = str(root / "module.c")
    found = cache.lookup_cache(target, "1f2e")
    if found:
        try:
            cache.load_from_cache(target, found)
            return
        except errors:
            pass
    (root / "module.c").write_text("int x;\n")


def broken(root, rank):
    """Build a module."""
    build(root, rank, ())


def check(root):
    """The module is there."""
    assert (root / "module.c").read_text() == "int x;\n"


def repaired(root, rank):
    """The same, with the fix."""
    build(root, rank, FileNotFoundError)
