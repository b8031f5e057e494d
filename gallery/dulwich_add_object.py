"""dulwich: two processes add the same object, and one fails.

Promise: An object store is shared by all processes that use a repository. Objects have the hash of their
contents as a name, so adding one twice is not a conflict: `add_object()` returns if the object is there. A
comment considers a "concurrent git gc".

Failure: The object is written with `GitFile`, whose lock file must not exist. If another process writes the
same object at that moment, `add_object()` raises `FileLocked`.

Harm: `porcelain.add()` and `commit()` fail if two processes add equal files, for example two jobs that
commit to one shared repository.

Fix: Write to a temporary file with a unique name and rename it, as `git` does.
"""

import os
import tempfile

from dulwich import object_store
from dulwich.objects import Blob


def setup(root):
    """An empty object store."""
    object_store.DiskObjectStore.init(str(root / "objects"))


def broken(root, rank):
    """Add an object."""
    object_store.DiskObjectStore(str(root / "objects")).add_object(Blob.from_string(b"contents"))


class UniqueFile:
    """A file that is written under a unique name and renamed."""

    def __init__(self, path, *args, **options):
        self._path = path

    def __enter__(self):
        descriptor, self._temporary = tempfile.mkstemp(dir=os.path.dirname(self._path))
        self._file = os.fdopen(descriptor, "wb")
        return self._file

    def __exit__(self, *error):
        self._file.close()
        os.replace(self._temporary, self._path)


def repaired(root, rank):
    """The same, with the fix."""
    object_store.GitFile = UniqueFile
    broken(root, rank)
