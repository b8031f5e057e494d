"""pooch: `Decompress` returns a file that another process is still writing.

Promise: The cache of `pooch` is shared by all processes of a user. Downloads go to a temporary file that is
renamed, and `make_local_storage()` allows that "when running in parallel" multiple jobs create the
directory.

Failure: `Decompress` writes to the final name. A second process finds that the name exists, does not
decompress, and returns the path of an incomplete file.

Harm: `pooch.retrieve(..., processor=Decompress())` returns the path of a truncated or empty file without an
error.

Fix: Decompress to a temporary file in the same directory, and rename it.
"""

import gzip
import os
import shutil

from pooch import Decompress

TEXT = b"all the data of the file"


def setup(root):
    """An archive that an earlier run has downloaded."""
    with gzip.open(root / "data.gz", "wb") as file:
        file.write(TEXT)


def read(processor, root):
    """Read the file that the processor returns."""
    with open(processor(str(root / "data.gz"), "fetch", None), "rb") as file:
        found = file.read()
    assert found == TEXT, f"the returned file has {len(found)} of {len(TEXT)} bytes"


def broken(root, rank):
    """Decompress the archive, or use what is there, and read it."""
    read(Decompress(), root)


class AtomicDecompress(Decompress):
    """The processor with the fix."""

    def __call__(self, fname, action, pooch):
        """Decompress like `Decompress`, in one step."""
        final = fname + ".decomp"
        if action in ("update", "download") or not os.path.exists(final):
            temporary = f"{final}.{os.getpid()}"
            with open(temporary, "wb") as output, gzip.open(fname) as compressed:
                shutil.copyfileobj(compressed, output)
            os.replace(temporary, final)
        return final


def repaired(root, rank):
    """The same, with the fix."""
    read(AtomicDecompress(), root)
