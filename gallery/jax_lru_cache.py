"""JAX: a process that is killed leaves a truncated entry in the compilation cache, which is never replaced.

Promise: The compilation cache is shared by the processes of a job and by later jobs. `put()` takes no
action "if a cache item with the same key already exists".

Failure: `put()` writes to the final name. A kill in the middle leaves an incomplete entry. `get()` returns
its bytes as a hit, and `put()` does not replace it, because it exists. With the default of no size limit
there is not even a lock, and another process can read the entry while it is written.

Harm: Each later process reads the bad entry and compiles the program again, or fails with
`jax_raise_persistent_cache_errors`. The cache never helps for this program, until the file is deleted by
hand.

Fix: Write to a temporary file and rename it.
"""

import os
import pathlib

from jax._src import lru_cache
from jax._src.lru_cache import LRUCache

PROGRAM = b"compiled program" * 10


def use(root):
    """Get a program from the cache, or compile it and put it there."""
    cache = LRUCache(str(root / "cache"), max_size=-1)
    found = cache.get("program")
    if found != PROGRAM:
        cache.put("program", PROGRAM)
    return found


def broken(root, rank):
    """Use the cache."""
    assert use(root) in (None, PROGRAM)


def check(root):
    """After at most one more compilation, the cache has the program."""
    use(root)
    found = use(root)
    assert found == PROGRAM, f"the cache has {len(found)} of {len(PROGRAM)} bytes, and this stays so"


class AtomicPath(pathlib.PosixPath):
    """A path with the fix."""

    def write_bytes(self, data):
        """Write in one step."""
        temporary = self.with_suffix(f".{os.getpid()}")
        super(AtomicPath, temporary).write_bytes(data)
        os.replace(temporary, self)


def repaired(root, rank):
    """The same, with the fix."""
    lru_cache.pathlib.Path = AtomicPath
    broken(root, rank)
