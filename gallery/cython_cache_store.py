"""Cython: two builds store the same file in the cache, and one of them fails.

Promise: The cache of `cythonize(cache=True)` is shared by all builds of a user, and `cythonize()` itself
uses multiple processes. Its clean-up skips "temp files that might still be used by other Cython processes".

Failure: `store_to_cache()` writes to a temporary file whose name depends only on the contents, and renames
it. Two processes that store the same result write to the same temporary file. The first one renames it, and
the second one finds nothing to rename. It can also rename a file that the other one has just truncated.

Harm: A build fails with `FileNotFoundError`, or the cache has an incomplete file for the next builds.

Fix: Use a temporary file with a unique name.
"""

import gzip
import os
import shutil
import tempfile

from Cython.Build.Cache import Cache

CODE = "int x;\n"


class Result:
    """The result of a compilation."""

    def get_generated_source_files(self):
        """The generated files."""
        return ["module.c"]


def setup(root):
    """A generated file."""
    (root / "module.c").write_text(CODE)


def broken(root, rank):
    """Store the result of a compilation."""
    Cache(str(root / "cache")).store_to_cache(str(root / "module.c"), "1f2e", Result())


def check(root):
    """The cache has the whole file."""
    with gzip.open(root / "cache" / "module.c-1f2e.gz", "rt") as file:
        assert file.read() == CODE


def store_to_cache(self, c_file, fingerprint, result):
    """Store like `Cache.store_to_cache()`, with a temporary file of its own."""
    final = self.fingerprint_file(c_file, fingerprint, ".gz")
    descriptor, temporary = tempfile.mkstemp(suffix=".tmp", dir=self.path)
    with open(c_file, "rb") as source, os.fdopen(descriptor, "wb") as raw, gzip.open(raw, "wb") as target:
        shutil.copyfileobj(source, target)
    os.rename(temporary, final)


def repaired(root, rank):
    """The same, with the fix."""
    Cache.store_to_cache = store_to_cache
    broken(root, rank)
