"""ASE: reading a JSON database fails while another process writes a row.

Promise: `ase.db.connect()` uses a lock file by default, so that multiple jobs can add their results to one
database.

Failure: Writers hold the lock, but they truncate the file and write it again, and readers do not take the
lock. A reader that comes in between finds an empty or incomplete file.

Harm: `select()`, `get()`, and the web interface fail with `JSONDecodeError` while a job saves a result. A
writer that is killed leaves an empty file, and all results are lost.

Fix: Write to a temporary file and rename it.
"""

import os

from ase import Atoms
from ase.db import connect
from ase.db.jsondb import JSONDatabase


def setup(root):
    """A database with one row."""
    connect(root / "results.json").write(Atoms("H"))


def broken(root, rank):
    """Process 0 adds a row; process 1 counts the rows."""
    database = connect(root / "results.json")
    if rank == 0:
        database.write(Atoms("He"))
    else:
        assert len(list(database.select())) in (1, 2)


original = JSONDatabase._write_json


def write_json(self, bigdct, ids, nextid):
    """Write like `_write_json()`, in one step."""
    final = self.filename
    self.filename = f"{final}.new"
    original(self, bigdct, ids, nextid)
    os.replace(self.filename, final)
    self.filename = final


def repaired(root, rank):
    """The same, with the fix."""
    JSONDatabase._write_json = write_json
    broken(root, rank)
