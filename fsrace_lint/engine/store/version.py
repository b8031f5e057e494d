"""The version of the program that wrote a cache: another version can have different findings."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT: Final = 3
"""The format of cache files; incremented when it changes."""

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_WITHOUT: Final = frozenset(
    {"cli/commands", "cli/daemon", "explore", "fixes", "instrument", "integrations", "report/page"}
)
"""Directories that cannot change a finding, relative to the package."""
_KINDS: Final = (".py", ".toml")


class Version(msgspec.Struct, frozen=True):
    """The program, identified by the stat signatures of its files or by their contents.

    The stat signatures are quick to compute and specific to one installation. The contents identify all equal
    installations.
    """

    files: bytes
    package: str = _PACKAGE

    @staticmethod
    def of(package: str = _PACKAGE) -> Version | None:
        """Compute the version of the program.

        Args:
            package: The directory of the program.

        Returns:
            The version, or None if the program is not in a directory.
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
        """Return the digest of the contents of the program's files; empty if they cannot be read."""
        if self not in CONTENTS:
            CONTENTS[self] = _content(self.package)
        return CONTENTS[self]

    def believe(self, files: bytes, content: bytes) -> None:
        """Accept a content digest from a sealed file, if the stat signatures match."""
        if files == self.files and content:
            CONTENTS.setdefault(self, content)

    def made(self, files: bytes, content: bytes) -> bool:
        """Return whether this program wrote a file.

        Args:
            files: The value of `files` in the file.
            content: The value of `content()` in the file.

        Returns:
            True if one of the two is the same.
        """
        return files == self.files or (content != b"" and content == self.content())


CONTENTS: Final[dict[Version, bytes]] = {}
"""The content digest of each version, computed or accepted once per process."""


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
    """Yield the paths of the files that can change a finding, in any order.

    Args:
        package: The directory of the program.
        inner: A directory in it, as a relative path.

    Raises:
        OSError: A directory cannot be listed.
    """
    with os.scandir(os.path.join(package, inner)) as entries:
        found = list(entries)
    for entry in found:
        name = f"{inner}/{entry.name}" if inner else entry.name
        if entry.name.endswith(_KINDS):
            yield entry.path
        elif name not in _WITHOUT and entry.name != "__pycache__" and entry.is_dir():
            yield from files_of(package, name)
