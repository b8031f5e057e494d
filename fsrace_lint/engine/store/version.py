"""What made a cache: another program may find something else in the same file."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT: Final = 3
"""To be raised when the layout of the files changes."""

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_WITHOUT: Final = frozenset(
    {"cli/commands", "cli/daemon", "explore", "fixes", "instrument", "integrations", "report/page"}
)
"""Directories that cannot change a finding, relative to the package."""
_KINDS: Final = (".py", ".toml")


class Version(msgspec.Struct, frozen=True):
    """The program, by the state of its files on the disk, and by what is in them.

    The first is quick to find out and holds for one installation only, the second holds for all
    that are equal.
    """

    files: bytes
    package: str = _PACKAGE

    @staticmethod
    def of(package: str = _PACKAGE) -> Version | None:
        """Look at the files of this program.

        Args:
            package: The folder of the program.

        Returns:
            The version, None where the program does not lie in a folder.
        """
        digest = _digest()
        try:
            for file in sorted(files_of(package)):
                status = os.stat(file)
                digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="replace"))
        except OSError:
            return None
        return Version(digest.digest(), package)

    def content(self) -> bytes:
        """Give a digest of what is in the files; empty where they cannot be read."""
        if self not in CONTENTS:
            CONTENTS[self] = _content(self.package)
        return CONTENTS[self]

    def believe(self, files: bytes, content: bytes) -> None:
        """Be told what `files` and `content()` were when this user sealed something."""
        if files == self.files and content:
            CONTENTS.setdefault(self, content)

    def made(self, files: bytes, content: bytes) -> bool:
        """Tell whether something was made by this program.

        Args:
            files: What `files` was at that time.
            content: What `content()` was at that time.

        Returns:
            True if either is the same.
        """
        return files == self.files or (content != b"" and content == self.content())


CONTENTS: Final[dict[Version, bytes]] = {}
"""What is in the files of a program: found out, or believed, once a process."""


def _content(package: str) -> bytes:
    digest = _digest()
    try:
        for file in sorted(files_of(package)):
            with open(file, "rb") as stream:
                data = stream.read()
            digest.update(f"{os.path.relpath(file, package)}\0{len(data)}\0".encode(errors="replace"))
            digest.update(data)
    except OSError:
        return b""
    return digest.digest()


def _digest() -> hashlib.blake2b:
    about = (FORMAT, sys.version_info, sys.implementation.cache_tag, msgspec.__version__)
    return hashlib.blake2b(repr(about).encode(), digest_size=20)


def files_of(package: str, inner: str = "") -> Iterator[str]:
    """List the files that can change a finding.

    Args:
        package: The folder of the program.
        inner: A folder in it, by its path from there.

    Yields:
        The path of each, in no order.

    Raises:
        OSError: A folder cannot be listed.
    """
    with os.scandir(os.path.join(package, inner)) as entries:
        found = list(entries)
    for entry in found:
        name = f"{inner}/{entry.name}" if inner else entry.name
        if entry.name.endswith(_KINDS):
            yield entry.path
        elif name not in _WITHOUT and entry.name != "__pycache__" and entry.is_dir():
            yield from files_of(package, name)
