"""Django: two uploads of the same name are saved, and one replaces the other.

Promise: `file_move_safe()` moves "in the safest way possible" and raises `FileExistsError` if the
destination exists and `allow_overwrite` is `False`. `FileSystemStorage._save()` relies on it: "we need to
try to create the file, but if it already exists we have to go back to `get_available_name()`".

Failure: The function checks the destination with `os.access()` and then calls `os.rename()`, which replaces
an existing file. A second worker process can move its own upload to the name after the check.

Harm: Both requests get the name `report.pdf`. One upload is lost, and its owner downloads the file of
another user. Only uploads that Django keeps in a temporary file are affected: by default, those larger than
2.5 MB.

Fix: Use `os.link()` and `os.unlink()`, because `os.link()` fails if the destination exists.
"""

import os

from django.conf import settings
from django.core.files import File

settings.configure(USE_TZ=True)

from django.core.files.storage import FileSystemStorage, filesystem  # noqa: E402  # needs the settings


class Upload(File):
    """An upload that is in a temporary file, like `TemporaryUploadedFile`."""

    def temporary_file_path(self):
        """The path of the temporary file."""
        return self.file.name


def setup(root):
    """Two uploads that have arrived."""
    (root / "media").mkdir()
    for rank in range(2):
        (root / f"upload.{rank}").write_text(f"file of user {rank}")


def broken(root, rank):
    """Save an upload."""
    with open(root / f"upload.{rank}", "rb") as file:
        FileSystemStorage(root / "media").save("report.pdf", Upload(file))


def check(root):
    """Both uploads are there."""
    found = sorted(path.read_text() for path in (root / "media").iterdir())
    assert found == ["file of user 0", "file of user 1"], f"only {found} is left"


def move(old, new, chunk_size=65536, allow_overwrite=False):
    """Move like `file_move_safe()`, on one filesystem."""
    os.link(old, new)
    os.unlink(old)


def repaired(root, rank):
    """The same, with the fix."""
    filesystem.file_move_safe = move
    broken(root, rank)
