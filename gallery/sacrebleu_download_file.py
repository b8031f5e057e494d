"""sacreBLEU: after a kill during a download, the test set can never be used.

Promise: `download_file()` takes a lock, so that multiple processes can request a test set at the same time.
It downloads a file of 0 bytes again, which is what an interrupted download leaves.

Failure: The archive is downloaded to its final name, checked, and then extracted. If the process is killed
after the download and before the extraction ends, later calls find the archive and do nothing.

Harm: Every later evaluation with this test set fails, because the extracted files are missing, until the
archive is deleted by hand.

Fix: Download to a temporary name, and rename the archive after it is extracted.
"""

import io
import os
import tarfile
import urllib.request

from sacrebleu import utils

TEXT = b"ein Satz\n"


def archive():
    """The archive that the server sends."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        member = tarfile.TarInfo("test.de")
        member.size = len(TEXT)
        file.addfile(member, io.BytesIO(TEXT))
    return buffer.getvalue()


ARCHIVE = archive()
# a server that needs no network
urllib.request.urlopen = lambda url: io.BytesIO(ARCHIVE)


def broken(root, rank):
    """Get a test set."""
    utils.download_file("https://server/test.tgz", str(root / "test.tgz"), extract_to=str(root / "raw"))


def check(root):
    """A later run gets the test set."""
    broken(root, 0)
    assert (root / "raw" / "test.de").read_bytes() == TEXT


original = utils.extract_tarball


def repaired(root, rank):
    """The same, with the fix: the archive has its final name when everything is extracted."""
    final = str(root / "test.tgz")
    if not os.path.exists(final):
        temporary = str(root / "download.tgz")
        if os.path.exists(temporary):
            os.unlink(temporary)
        utils.download_file("https://server/test.tgz", temporary, extract_to=str(root / "raw"))
        os.rename(temporary, final)
