"""numba: two processes choose the same data file, and the cache returns the code of another signature.

Promise: The cache of `@njit(cache=True)` is shared by all processes. `_open_for_write()` opens its files
"in a race condition-free way (hopefully)", with a temporary name and a rename.

Failure: `save()` reads the index, chooses the first data file that the index does not use, and writes the
index and the data. Two processes that compile two signatures of one function both find no index and both
choose `f.1.nbc`. The index of one process then names the data file of the other.

Harm: A later process loads the machine code of the other signature for its own. It computes a wrong number
and reports nothing.

Fix: Give each data file a unique name, and write it before the index that names it.
"""

import uuid

from numba.core.caching import IndexDataCacheFile

SIGNATURES = ("f(int64)", "f(float64)")


def cache(root):
    """The cache of one function."""
    return IndexDataCacheFile(str(root), "f", "stamp")


def broken(root, rank):
    """Each process saves the code of another signature."""
    cache(root).save(SIGNATURES[rank], f"machine code of {SIGNATURES[rank]}")


def check(root):
    """What the cache returns for a signature is the code of this signature, or nothing."""
    for signature in SIGNATURES:
        found = cache(root).load(signature)
        assert found in (None, f"machine code of {signature}"), f"{signature} loads the {found}"


class UniqueNames(IndexDataCacheFile):
    """The cache file with the fix."""

    def save(self, key, data):
        """Save like `IndexDataCacheFile.save()`."""
        name = self._data_name(uuid.uuid4().int)
        self._save_data(name, data)
        overloads = self._load_index()
        overloads[key] = name
        self._save_index(overloads)


def repaired(root, rank):
    """The same, with the fix."""
    UniqueNames(str(root), "f", "stamp").save(SIGNATURES[rank], f"machine code of {SIGNATURES[rank]}")
