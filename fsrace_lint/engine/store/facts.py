"""The packed facts of a project: one file with an index, from which the facts of each file can be read."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import struct
import time
import weakref
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec

from fsrace_lint.engine.store.folder import LARGEST
from fsrace_lint.engine.store.seal import SIZE, is_sealed, seal
from fsrace_lint.files.stat_signature import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.engine.store.folder import Folder
    from fsrace_lint.engine.store.version import Version
    from fsrace_lint.syntax.extract import SyntaxProblem
    from fsrace_lint.syntax.model import FileFacts
    from fsrace_lint.syntax.name_index_entry import PackedIndexEntry

Facts: TypeAlias = "FileFacts | SyntaxProblem"

_MAGIC: Final = b"fsrfacts"
_HEAD: Final = struct.Struct(f"<8s20s20sQQ{SIZE}s")
_INDEX_LARGEST: Final = 64 * 1024 * 1024
"""The maximum size of the index in bytes, and of all heads together."""
_FACTS_LARGEST: Final = 64 * 1024 * 1024
"""The maximum size of the facts of one file in bytes, packed or unpacked."""
_NEVER: Final = -1
"""A size that no file has."""


class Row(msgspec.Struct, frozen=True):
    """The data to store for one file.

    Attributes:
        relative: The path, relative to the root of the project.
        status: The stat signature, or None if it cannot be trusted.
        digest: The digest of the content.
        facts: The facts. None if they are unknown, or already in the cache.
        parsed: Whether the facts are a `FileFacts` and not a `SyntaxProblem`.
    """

    relative: str
    status: Status | None
    digest: str
    facts: Facts | None = None
    parsed: bool = True


class _IndexEntry(msgspec.Struct, frozen=True, array_like=True):
    """An entry of the index. A `length` of 0 means that no facts of the file are stored."""

    path: bytes
    status: Status
    digest: bytes
    parsed: bool = True
    offset: int = 0
    length: int = 0
    digest_of_facts: bytes = b""


class _Index(msgspec.Struct, frozen=True, array_like=True):
    """The index: an entry per file, and the position of the heads, which are in the same order."""

    entries: list[_IndexEntry] = []
    offset: int = 0
    length: int = 0
    checksum: bytes = b""


_FactsPiece: TypeAlias = "tuple[_IndexEntry, bytes | memoryview, msgspec.Raw]"
"""An index entry, and the packed facts and the head that belong to it."""

_UNKNOWN: Final = Status(_NEVER, 0, 0, 0)
_index_of: Final = msgspec.msgpack.Decoder(_Index).decode
_MISSES: Final = (msgspec.DecodeError, ValueError, RecursionError, OverflowError, zlib.error)
"""The exceptions that reading damaged data raises."""


@functools.cache
def _decoder(*, parsed: bool) -> Callable[[bytes], Facts]:
    """Return the decoder for the facts of a file, or for its syntax problem."""
    # a run whose results are all cached reads no facts
    from fsrace_lint.syntax.extract import SyntaxProblem  # noqa: PLC0415
    from fsrace_lint.syntax.model import FileFacts  # noqa: PLC0415

    kind: Any = FileFacts if parsed else SyntaxProblem
    return cast("Callable[[bytes], Facts]", msgspec.msgpack.Decoder(kind).decode)


_raws_of: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_NO_HEAD: Final = msgspec.Raw(msgspec.msgpack.encode(None))


class PackedFacts:
    """The stored facts of a project."""

    def __init__(self, folder: Folder, version: Version, name: str) -> None:
        """Open a file of the cache. A file that is damaged, or of another version, counts as empty.

        Args:
            folder: The directory of the cache.
            version: The version of this program.
            name: The name of the file.
        """
        self._folder, self._version, self._name = folder, version, name
        self._since = time.time_ns()
        self.entries: dict[str, _IndexEntry] = {}
        self.index = _Index()
        self._fresh = False
        self.hits = 0
        """The number of files whose facts were read."""
        self.is_foreign = False
        """Whether the file is of this version without a valid seal: damaged, or written by another user."""
        self._descriptor = folder.open(name)
        if self._descriptor is not None:
            self._closing = weakref.finalize(self, os.close, self._descriptor)
            try:
                self.index = self._index(self._descriptor)
                self.entries = {os.fsdecode(entry.path): entry for entry in self.index.entries}
            except (OSError, *_MISSES):
                self.index, self.entries = _Index(), {}

    def _index(self, descriptor: int) -> _Index:
        head = _at(descriptor, 0, _HEAD.size)
        if len(head) < _HEAD.size:
            return _Index()
        magic, files, content, offset, length, mark = _HEAD.unpack(head)
        if magic != _MAGIC or length > _INDEX_LARGEST or not self._version.made(files, content):
            return _Index()
        self._fresh = files == self._version.files
        data = _at(descriptor, offset, length)
        self.is_foreign = not is_sealed(head[:-SIZE] + data, mark)
        if self.is_foreign:
            return _Index()
        self._version.believe(files, content)
        return _index_of(data)

    @functools.cached_property
    def _heads(self) -> dict[str, msgspec.Raw]:
        """The encoded heads by file, read on first access."""
        at = self.index
        if self._descriptor is None or not 0 < at.length <= _INDEX_LARGEST:
            return {}
        try:
            data = _at(self._descriptor, at.offset, at.length)
            if _checksum(data) != at.checksum:
                return {}
            return dict(zip(self.entries, _raws_of(data), strict=True))
        except (OSError, *_MISSES):
            return {}

    def head(self, relative: str, digest: str) -> PackedIndexEntry | None:
        """Read the head of a file: the names in it.

        Args:
            relative: The path, relative to the root of the project.
            digest: The digest of the content.

        Returns:
            The head, or None if it is not stored.
        """
        packed = self._heads.get(relative) if self.parsed(relative, digest) else None
        if packed is None:
            return None
        from fsrace_lint.syntax.name_index_entry import PackedIndexEntry  # noqa: PLC0415  # as above

        try:
            return PackedIndexEntry(_raws_of(packed))
        except _MISSES:
            return None

    def close(self) -> None:
        """Close the file before this object is garbage collected. Nothing can be read afterwards."""
        if self._descriptor is not None:
            self._closing()
            self._descriptor = None

    def unchanged(self, relative: str, status: Status) -> str | None:
        """Return the stored digest of a file if its stat signature is unchanged, else None."""
        entry = self.entries.get(relative)
        return entry.digest.hex() if entry is not None and entry.status == status else None

    def digest(self, relative: str) -> str | None:
        """Return the digest of the content that a file had when it was stored, or None."""
        entry = self.entries.get(relative)
        return None if entry is None else entry.digest.hex()

    def holds(self, relative: str, digest: str) -> bool:
        """Return whether data is stored for a file with this content."""
        return self.digest(relative) == digest

    def parsed(self, relative: str, digest: str) -> bool | None:
        """Return whether a file with this content can be parsed, or None if that is not stored."""
        entry = self.entries.get(relative)
        return entry.parsed if entry is not None and entry.length and entry.digest.hex() == digest else None

    def load(self, relative: str, digest: str) -> Facts | None:
        """Read the facts of a file.

        Args:
            relative: The path, relative to the root of the project.
            digest: The digest of the content.

        Returns:
            The facts, or None if they are not stored or are damaged.
        """
        entry = self.entries.get(relative)
        if entry is None or entry.digest.hex() != digest:
            return None
        try:
            data = _unpacked(self._packed(entry), _FACTS_LARGEST)
            facts = _decoder(parsed=entry.parsed)(data)
        except (OSError, *_MISSES):
            return None
        self.hits += 1
        return facts

    def _packed(self, entry: _IndexEntry) -> bytes:
        """Read the packed facts of a file; empty if they are damaged."""
        if self._descriptor is None or not 0 < entry.length <= _FACTS_LARGEST:
            return b""
        data = _at(self._descriptor, entry.offset, entry.length)
        return data if _digest(entry, data) == entry.digest_of_facts else b""

    def save(self, rows: Iterable[Row], remains: Callable[[str], bool]) -> bool:
        """Rewrite the file if there is new data to store.

        Args:
            rows: All files of this run.
            remains: Returns whether another stored file still exists.

        Returns:
            Whether the file was written.

        Raises:
            OSError: The file cannot be written.
        """
        wanted = list(rows)
        if self._fresh and not any(map(self._is_news, wanted)):
            return False
        named = {row.relative for row in wanted}
        others = [entry for name, entry in self.entries.items() if name not in named and remains(name)]
        pieces = _Pieces()
        old = self._everything()
        for row in wanted:
            pieces.add(*(self._known(row, old) if row.facts is None else _new(row, self._status(row))))
        for entry in others:
            pieces.add(entry, _part(old, entry), self._heads.get(os.fsdecode(entry.path), _NO_HEAD))
        if os.name == "nt":  # an open file cannot be replaced there
            self.close()
        self._folder.write(self._name, pieces.whole(self._version))
        return True

    def _is_news(self, row: Row) -> bool:
        entry = self.entries.get(row.relative)
        if entry is None or entry.digest.hex() != row.digest:
            return True
        return self._status(row) != entry.status or row.facts is not None

    def _status(self, row: Row) -> Status:
        """Return the stat signature to store: unknown if a later change of the file could leave it as is."""
        return row.status if row.status is not None and row.status.settled(self._since) else _UNKNOWN

    def _known(self, row: Row, old: memoryview) -> _FactsPiece:
        """Return the data already stored for a file. Damaged facts are copied as they are."""
        entry = self.entries.get(row.relative)
        if entry is None or entry.digest.hex() != row.digest:
            return _entry_of(row, self._status(row)), b"", _NO_HEAD
        status = self._status(row)
        if status != entry.status:
            entry = msgspec.structs.replace(entry, status=status)
        return entry, _part(old, entry), self._heads.get(row.relative, _NO_HEAD)

    def _everything(self) -> memoryview:
        """Read the packed facts of all files; empty if that fails."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                return memoryview(_at(self._descriptor, 0, min(self.index.offset, LARGEST)))
        return memoryview(b"")


def _entry_of(row: Row, status: Status) -> _IndexEntry:
    return _IndexEntry(os.fsencode(row.relative), status, bytes.fromhex(row.digest), row.parsed)


def _new(row: Row, status: Status) -> _FactsPiece:
    """Pack the facts of a file."""
    packed, head = b"", _NO_HEAD
    # A lone surrogate or a huge number in a literal cannot be encoded.
    with contextlib.suppress(ValueError, OverflowError, RecursionError):
        packed = zlib.compress(msgspec.msgpack.encode(row.facts), 1)
        if row.parsed:
            from fsrace_lint.syntax.name_index_entry import head_of  # noqa: PLC0415  # as above

            head = msgspec.Raw(msgspec.msgpack.encode(head_of(cast("FileFacts", row.facts))))
    entry = _entry_of(row, status)
    return msgspec.structs.replace(entry, digest_of_facts=_digest(entry, packed)), packed, head


def _part(old: memoryview, entry: _IndexEntry) -> memoryview:
    """Return the packed facts of one file from those of all files."""
    found = old[entry.offset : entry.offset + entry.length]
    return found if len(found) == entry.length else old[:0]


class _Pieces:
    """The contents of a file: the facts of each file, the heads, and the index."""

    def __init__(self) -> None:
        self._entries: list[_IndexEntry] = []
        self._heads: list[msgspec.Raw] = []
        self._packed: list[bytes | memoryview] = []
        self._offset = _HEAD.size

    def add(self, entry: _IndexEntry, packed: bytes | memoryview, head: msgspec.Raw) -> None:
        """Add a file. Its facts are dropped if the total would become too large."""
        if self._offset + len(packed) > LARGEST - 2 * _INDEX_LARGEST:
            packed = b""
        if (entry.offset, entry.length) != (self._offset, len(packed)):
            entry = msgspec.structs.replace(entry, offset=self._offset, length=len(packed))
        self._entries.append(entry)
        self._packed.append(packed)
        self._heads.append(head if packed else _NO_HEAD)
        self._offset += len(packed)

    def whole(self, version: Version) -> list[bytes | memoryview]:
        """Return the bytes of the file.

        Raises:
            OSError: The data cannot be sealed.
        """
        data = msgspec.msgpack.encode(self._heads)
        heads = data if len(data) <= _INDEX_LARGEST else b""
        index = msgspec.msgpack.encode(_Index(self._entries, self._offset, len(heads), _checksum(heads)))
        offset = self._offset + len(heads)
        begin = _HEAD.pack(_MAGIC, version.files, version.content(), offset, len(index), bytes(SIZE))[:-SIZE]
        return [begin + seal(begin + index), *self._packed, heads, index]


def _digest(entry: _IndexEntry, packed: bytes) -> bytes:
    """Return the digest of packed facts. The sealed index holds it, so facts need no seal of their own."""
    return hashlib.blake2b(entry.digest + packed, digest_size=16).digest()


def _unpacked(packed: bytes, largest: int) -> bytes:
    """Decompress data.

    Raises:
        ValueError: The data is empty, truncated, or larger than allowed.
        zlib.error: The data is damaged.
    """
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, largest)
    if not data or not unpacking.eof:
        raise ValueError("not a packed value")
    return data


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=20).digest()


def _at(descriptor: int, offset: int, length: int) -> bytes:
    """Read from an offset of a file; shorter than `length` at the end of the file."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)
