"""The packed facts of a project: one file with an index, from which facts are read one by one."""

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
"""The bytes that the index may have, and all heads."""
_FACTS_LARGEST: Final = 64 * 1024 * 1024
"""The bytes that the facts of one file may have."""
_NEVER: Final = -1
"""A size that no file has."""


class Row(msgspec.Struct, frozen=True):
    """What is to be remembered of one file.

    `status` is None where it must not be trusted. `facts` is None where they are not known, or
    are those that the cache has already; `parsed` tells whether they are more than a SyntaxProblem.
    """

    relative: str
    status: Status | None
    digest: str
    facts: Facts | None = None
    parsed: bool = True


class _IndexEntry(msgspec.Struct, frozen=True, array_like=True):
    """A line of the index; a `length` of 0 means that there are no facts of the file."""

    path: bytes
    status: Status
    digest: bytes
    parsed: bool = True
    offset: int = 0
    length: int = 0
    digest_of_facts: bytes = b""


class _Index(msgspec.Struct, frozen=True, array_like=True):
    """What the file holds, and where: the heads stand together, in the order of the entries."""

    entries: list[_IndexEntry] = []
    offset: int = 0
    length: int = 0
    checksum: bytes = b""


_FactsPiece: TypeAlias = "tuple[_IndexEntry, bytes | memoryview, msgspec.Raw]"
"""A line of the index, the packed facts that it is about, and the head of these."""

_UNKNOWN: Final = Status(_NEVER, 0, 0, 0)
_index_of: Final = msgspec.msgpack.Decoder(_Index).decode
_MISSES: Final = (msgspec.DecodeError, ValueError, RecursionError, OverflowError, zlib.error)
"""What reading damaged data raises."""


@functools.cache
def _decoder(*, parsed: bool) -> Callable[[bytes], Facts]:
    """Give what reads the facts of a file, or why it has none."""
    # where all results are known, no facts are read
    from fsrace_lint.syntax.extract import SyntaxProblem  # noqa: PLC0415
    from fsrace_lint.syntax.model import FileFacts  # noqa: PLC0415

    kind: Any = FileFacts if parsed else SyntaxProblem
    return cast("Callable[[bytes], Facts]", msgspec.msgpack.Decoder(kind).decode)


_raws_of: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_NO_HEAD: Final = msgspec.Raw(msgspec.msgpack.encode(None))


class PackedFacts:
    """The facts of the files of a project, as far as they are remembered."""

    def __init__(self, folder: Folder, version: Version, name: str) -> None:
        """Open the file of a cache; one that is damaged, or of another version, is empty.

        Args:
            folder: The folder of the cache.
            version: This program.
            name: The name of the file.
        """
        self._folder, self._version, self._name = folder, version, name
        self._since = time.time_ns()
        self.entries: dict[str, _IndexEntry] = {}
        self.index = _Index()
        self._fresh = False
        self.hits = 0
        """How many facts were read."""
        self.is_foreign = False
        """Whether there is a file of this version that somebody else has written, or damaged."""
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
        """The heads by file, as they were packed: read when the first one is asked for."""
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
        """Read the head of a file.

        Args:
            relative: Its path from the root of the project.
            digest: The digest of its content.

        Returns:
            The names in it, None where they are not known.
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
        """Close the file, which otherwise stays open as long as this is there; nothing more can be read."""
        if self._descriptor is not None:
            self._closing()
            self._descriptor = None

    def unchanged(self, relative: str, status: Status) -> str | None:
        """Give the digest of a file that is as it was, None for others."""
        entry = self.entries.get(relative)
        return entry.digest.hex() if entry is not None and entry.status == status else None

    def digest(self, relative: str) -> str | None:
        """Give the digest of the content that a file had when it was remembered; None where it was not."""
        entry = self.entries.get(relative)
        return None if entry is None else entry.digest.hex()

    def holds(self, relative: str, digest: str) -> bool:
        """Tell whether something is remembered of a file with this content."""
        return self.digest(relative) == digest

    def parsed(self, relative: str, digest: str) -> bool | None:
        """Tell whether a file with this content can be parsed; None where that is not known."""
        entry = self.entries.get(relative)
        return entry.parsed if entry is not None and entry.length and entry.digest.hex() == digest else None

    def load(self, relative: str, digest: str) -> Facts | None:
        """Read the facts of a file.

        Args:
            relative: Its path from the root of the project.
            digest: The digest of its content.

        Returns:
            Its facts, None where they are not known or damaged.
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
        """Read what the file holds of a file; empty where it is damaged."""
        if self._descriptor is None or not 0 < entry.length <= _FACTS_LARGEST:
            return b""
        data = _at(self._descriptor, entry.offset, entry.length)
        return data if _digest(entry, data) == entry.digest_of_facts else b""

    def save(self, rows: Iterable[Row], remains: Callable[[str], bool]) -> bool:
        """Write the file anew, if there is something new to remember.

        Args:
            rows: All files of this run.
            remains: Tells whether another file is still there.

        Returns:
            Whether it was written.

        Raises:
            OSError: It cannot be written.
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
        if os.name == "nt":  # it cannot be replaced there while it is open
            self.close()
        self._folder.write(self._name, pieces.whole(self._version))
        return True

    def _is_news(self, row: Row) -> bool:
        entry = self.entries.get(row.relative)
        if entry is None or entry.digest.hex() != row.digest:
            return True
        return self._status(row) != entry.status or row.facts is not None

    def _status(self, row: Row) -> Status:
        """Give the status to remember: none where the file may change and keep it."""
        return row.status if row.status is not None and row.status.settled(self._since) else _UNKNOWN

    def _known(self, row: Row, old: memoryview) -> _FactsPiece:
        """Give what is held of a file already; what is damaged stays so until somebody reads it."""
        entry = self.entries.get(row.relative)
        if entry is None or entry.digest.hex() != row.digest:
            return _entry_of(row, self._status(row)), b"", _NO_HEAD
        status = self._status(row)
        if status != entry.status:
            entry = msgspec.structs.replace(entry, status=status)
        return entry, _part(old, entry), self._heads.get(row.relative, _NO_HEAD)

    def _everything(self) -> memoryview:
        """Read the facts of all files, as they were packed; nothing where that cannot be."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                return memoryview(_at(self._descriptor, 0, min(self.index.offset, LARGEST)))
        return memoryview(b"")


def _entry_of(row: Row, status: Status) -> _IndexEntry:
    return _IndexEntry(os.fsencode(row.relative), status, bytes.fromhex(row.digest), row.parsed)


def _new(row: Row, status: Status) -> _FactsPiece:
    """Pack the facts of a file."""
    packed, head = b"", _NO_HEAD
    # A lone surrogate or a large number in a literal: there is no code for them.
    with contextlib.suppress(ValueError, OverflowError, RecursionError):
        packed = zlib.compress(msgspec.msgpack.encode(row.facts), 1)
        if row.parsed:
            from fsrace_lint.syntax.name_index_entry import head_of  # noqa: PLC0415  # as above

            head = msgspec.Raw(msgspec.msgpack.encode(head_of(cast("FileFacts", row.facts))))
    entry = _entry_of(row, status)
    return msgspec.structs.replace(entry, digest_of_facts=_digest(entry, packed)), packed, head


def _part(old: memoryview, entry: _IndexEntry) -> memoryview:
    """Give the facts of a file out of those of all."""
    found = old[entry.offset : entry.offset + entry.length]
    return found if len(found) == entry.length else old[:0]


class _Pieces:
    """What a file is made of: the facts, one after the other, the heads, and the index."""

    def __init__(self) -> None:
        self._entries: list[_IndexEntry] = []
        self._heads: list[msgspec.Raw] = []
        self._packed: list[bytes | memoryview] = []
        self._offset = _HEAD.size

    def add(self, entry: _IndexEntry, packed: bytes | memoryview, head: msgspec.Raw) -> None:
        """Put a file in; its facts are left out where there is no room."""
        if self._offset + len(packed) > LARGEST - 2 * _INDEX_LARGEST:
            packed = b""
        if (entry.offset, entry.length) != (self._offset, len(packed)):
            entry = msgspec.structs.replace(entry, offset=self._offset, length=len(packed))
        self._entries.append(entry)
        self._packed.append(packed)
        self._heads.append(head if packed else _NO_HEAD)
        self._offset += len(packed)

    def whole(self, version: Version) -> list[bytes | memoryview]:
        """Give the bytes of the file.

        Raises:
            OSError: They cannot be sealed.
        """
        data = msgspec.msgpack.encode(self._heads)
        heads = data if len(data) <= _INDEX_LARGEST else b""
        index = msgspec.msgpack.encode(_Index(self._entries, self._offset, len(heads), _checksum(heads)))
        offset = self._offset + len(heads)
        begin = _HEAD.pack(_MAGIC, version.files, version.content(), offset, len(index), bytes(SIZE))[:-SIZE]
        return [begin + seal(begin + index), *self._packed, heads, index]


def _digest(entry: _IndexEntry, packed: bytes) -> bytes:
    """Give what facts are known by, which the sealed index holds: so they need no seal of their own."""
    return hashlib.blake2b(entry.digest + packed, digest_size=16).digest()


def _unpacked(packed: bytes, largest: int) -> bytes:
    """Unpack data.

    Raises:
        ValueError: There is none, or it is larger than it may be.
        zlib.error: It is damaged.
    """
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, largest)
    if not data or not unpacking.eof:
        raise ValueError("nothing that was packed here")
    return data


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=20).digest()


def _at(descriptor: int, offset: int, length: int) -> bytes:
    """Read from a place in a file; less where it ends before."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, length)
