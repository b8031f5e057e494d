"""The stored results of runs, or the packed library models, each under a digest of its inputs."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.engine.store.seal import SIZE, is_sealed, seal

if TYPE_CHECKING:
    from fsrace_lint.engine.store.folder import Folder
    from fsrace_lint.engine.store.version import Version

_MAGIC: Final = b"fsrfound"
_HEAD: Final = struct.Struct(f"<8s20s20s{SIZE}s")
MOST: Final = 8
"""The maximum number of stored results. The least recently written one is dropped first."""
_LARGEST: Final = 64 * 1024 * 1024
"""The maximum size of all results in bytes."""


class _Result(msgspec.Struct, frozen=True, array_like=True):
    key: bytes
    value: bytes


_results_of: Final = msgspec.msgpack.Decoder(list[_Result]).decode


class Results:
    """The stored results of a project."""

    def __init__(self, folder: Folder, version: Version, name: str) -> None:
        """Initialize with a file of a cache, which is read on demand.

        Args:
            folder: The directory of the cache.
            version: The version of this program.
            name: The name of the file.
        """
        self._folder, self._version, self._name = folder, version, name

    def get(self, key: bytes) -> bytes | None:
        """Return the value stored under a key, or None if there is none or it is damaged."""
        return next((result.value for result in self._read() if result.key == key), None)

    def put(self, key: bytes, value: bytes) -> None:
        """Store a value as the most recent one, and drop the oldest values if there are too many.

        Args:
            key: The digest of all inputs of the value.
            value: The result.

        Raises:
            OSError: The file cannot be written.
        """
        if len(value) > _LARGEST:
            return
        kept = [result for result in self._read() if result.key != key][1 - MOST :]
        kept.append(_Result(key, value))
        while sum(len(result.value) for result in kept) > _LARGEST:
            del kept[0]
        data = msgspec.msgpack.encode(kept)
        files, content = self._version.files, self._version.content()
        mark = seal(_MAGIC + files + content + data)
        self._folder.write(self._name, [_HEAD.pack(_MAGIC, files, content, mark), data])

    def _read(self) -> list[_Result]:
        """Read the file. A file that is damaged, or of another version, counts as empty."""
        data = self._folder.read(self._name, 2 * _LARGEST)
        if data is None or len(data) < _HEAD.size:
            return []
        magic, files, content, mark = _HEAD.unpack_from(data)
        body = data[_HEAD.size :]
        if magic != _MAGIC or not self._version.made(files, content):
            return []
        if not is_sealed(magic + files + content + body, mark):
            return []
        self._version.believe(files, content)
        try:
            return _results_of(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return []
