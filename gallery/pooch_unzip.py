"""pooch: after a kill, `Unzip` returns a partly extracted file in every later run.

Promise: `Unzip` checks whether all members of the archive are in the directory, and extracts the archive
again otherwise. Downloads go to a temporary file, so that a failed download leaves nothing behind.

Failure: The members are extracted to their final names. If the process is killed while it writes a member,
the name of that member exists. If all other members exist too, later runs take the directory for complete.

Harm: A file of the data set stays truncated or empty, and no later run repairs it or reports it.

Fix: Extract to a temporary directory, and rename it to the final name.
"""

import os
import shutil
import tempfile
import zipfile

from pooch import Unzip

MEMBERS = {"a.csv": "1,2\n", "b.csv": "3,4\n"}


def setup(root):
    """An archive that an earlier run has downloaded."""
    with zipfile.ZipFile(root / "data.zip", "w") as archive:
        for name, text in MEMBERS.items():
            archive.writestr(name, text)


def broken(root, rank):
    """Extract the archive."""
    Unzip()(str(root / "data.zip"), "fetch", None)


def check(root):
    """A later run gets the whole data set."""
    for path in Unzip()(str(root / "data.zip"), "fetch", None):
        with open(path) as file:
            found = file.read()
        assert found == MEMBERS[os.path.basename(path)], (
            f"a later run gets {found!r} in {os.path.basename(path)}"
        )


class AtomicUnzip(Unzip):
    """The processor with the fix."""

    def _extract_file(self, fname, extract_dir):
        temporary = tempfile.mkdtemp(dir=os.path.dirname(extract_dir))
        super()._extract_file(fname, temporary)
        shutil.rmtree(extract_dir)
        os.rename(temporary, extract_dir)


def repaired(root, rank):
    """The same, with the fix."""
    AtomicUnzip()(str(root / "data.zip"), "fetch", None)
