"""pickleshare: a key that exists is reported as missing while another process assigns it.

Promise: `PickleShareDB` is a "datastore with concurrency support": "many processes can access the database
simultaneously".

Failure: `__setitem__()` opens the file of the key with `"wb"` and pickles into it. Another process that
reads the key at that moment finds an empty file, and `__getitem__()` turns every error into a `KeyError`.

Harm: A key that has always had a value seems to be missing. Code that then stores a default loses the
value: IPython 8 keeps variables, aliases, and bookmarks in this database.

Fix: Write to a temporary file in another directory and rename it.
"""

import os
import pickle

from pickleshare import PickleShareDB


def setup(root):
    """A database with one key."""
    PickleShareDB(str(root / "db"))["counter"] = 1


def use(database, rank):
    """Process 0 assigns the key; process 1 reads it."""
    if rank == 0:
        database["counter"] = 2
    else:
        assert database["counter"] in (1, 2)


def broken(root, rank):
    """Use the database."""
    use(PickleShareDB(str(root / "db")), rank)


class AtomicDB(PickleShareDB):
    """The database with the fix."""

    def __setitem__(self, key, value):
        """Assign a key in one step."""
        temporary = f"{self.root}.{os.getpid()}"
        with open(temporary, "wb") as file:
            pickle.dump(value, file, protocol=2)
        os.replace(temporary, self.root / key)


def repaired(root, rank):
    """The same, with the fix."""
    use(AtomicDB(str(root / "db")), rank)
