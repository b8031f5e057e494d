"""What library names mean: data, one TOML file a framework, extensible by users in the same format."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fsrace_lint.catalog.arguments import ArgumentName, argument, flags
from fsrace_lint.catalog.entries import CatalogEntry, CatalogError, Effect, Op
from fsrace_lint.catalog.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "KINDS",
    "ArgumentName",
    "Catalog",
    "CatalogEntry",
    "CatalogError",
    "Effect",
    "Op",
    "argument",
    "extended",
    "files",
    "flags",
    "load",
    "packed",
    "parse",
    "validate",
]

HELPERS: Final = "fsrace_lint.safe"
"""The module with the helpers."""


class Catalog:
    """All entries, found by kind and name; of two entries of a kind for one name the later holds."""

    def __init__(self, found: Iterable[tuple[str, CatalogEntry]]) -> None:
        """Index entries, given as pairs of kind and entry."""
        self._tables: dict[str, dict[str, CatalogEntry]] = {kind: {} for kind in KINDS}
        for kind, entry in found:
            for name in entry.names:
                self._tables[kind][name] = entry
        self.last_names: dict[str, frozenset[str]] = {
            kind: frozenset(name.rpartition(".")[2] for name in table) for kind, table in self._tables.items()
        }
        self._listed = frozenset(name for table in self._tables.values() for name in table)
        self._any: dict[tuple[tuple[str, ...], str], bool] = {}
        self._in_process = tuple(f"{name}." for name in self._tables["in-process"])
        self.libraries = frozenset(name.partition(".")[0] for name in self._listed if "." in name)
        """The topmost packages of what has an entry."""

    def names(self, kind: str) -> Iterable[str]:
        """Give the names that have an entry of a kind."""
        return self._tables[kind]

    def find(self, kind: str, name: str | None) -> Any:  # the type follows from the kind
        """Look a qualified name up.

        Args:
            kind: One of KINDS.
            name: A qualified name, or None where it is not known.

        Returns:
            The entry of that very name, else the one for its last part, else None.
            Locks and barriers of threads are none.
        """
        if name is None:
            return None
        table = self._tables[kind]
        entry = table.get(name)
        if entry is not None:
            return entry
        if kind in {"lock", "barrier"} and name.startswith(self._in_process):
            return None
        return table.get("*." + name.rpartition(".")[2])

    def exact(self, kind: str, name: str) -> Any:  # the type follows from the kind
        """Look a qualified name up without falling back to its last part."""
        return self._tables[kind].get(name)

    def is_listed(self, name: str) -> bool:
        """Tell whether there is an entry of any kind for this very name."""
        return name in self._listed

    def is_any(self, kinds: tuple[str, ...], name: str | None) -> bool:
        """Tell whether a name has an entry of one of the kinds."""
        if name is None:
            return False
        key = kinds, name
        if key not in self._any:
            self._any[key] = any(self.find(kind, name) is not None for kind in kinds)
        return self._any[key]

    def is_in_process(self, name: str) -> bool:
        """Tell whether a name belongs to a module for the threads or tasks of one process."""
        return name.startswith(self._in_process)


def files() -> dict[str, str]:
    """Give the catalog's own files: their text by framework, in the order of their names."""
    import importlib.resources  # noqa: PLC0415  # not needed where the entries are remembered

    found = importlib.resources.files(__package__).iterdir()
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in sorted(found, key=lambda file: file.name)
        if file.name.endswith(".toml")
    }


def load() -> Catalog:
    """Read the catalog that is part of the package.

    Returns:
        The catalog, built once a process.

    Raises:
        CatalogError: An entry is malformed.
    """
    return own_catalog(b"")


@functools.cache
def own_catalog(kept: bytes) -> Catalog:
    """Return the catalog that comes with the program, from its packed form or from its files."""
    return Catalog(own_rows(kept))


@functools.cache
def extended(tables: str, origin: str, helpers: str | None = None, kept: bytes = b"") -> Catalog:
    """Read the catalog together with a user's entries, which hold where ours say something else.

    Args:
        tables: The user's tables as JSON, in the format of our files; may be empty.
        origin: The file and the table they stand in, for errors, and the source of entries without one.
        helpers: The module that is the user's copy of the helpers.
        kept: What `packed` gave; our own files are read where it is empty or damaged.

    Returns:
        The catalog, built once a process for the same entries.

    Raises:
        CatalogError: An entry is malformed.
    """
    if not tables and helpers is None:
        return own_catalog(kept)
    copied = () if helpers is None else _copied(helpers, kept)
    return Catalog((*own_rows(kept), *copied, *_users(tables, origin)))


def validate(tables: str, origin: str) -> None:
    """Make sure of a user's entries, given as for `extended`.

    Raises:
        CatalogError: An entry is malformed.
    """
    _users(tables, origin)


@functools.cache
def _users(tables: str, origin: str) -> tuple[tuple[str, CatalogEntry], ...]:
    if not tables:
        return ()
    from fsrace_lint.catalog.reading import read  # noqa: PLC0415  # few users have entries

    return tuple(read(msgspec.json.decode(tables), origin, default_source=origin))


def _copied(helpers: str, kept: bytes) -> Iterator[tuple[str, CatalogEntry]]:
    """Give what is known of the helpers for a copy of them under another name."""
    for kind, entry in own_rows(kept):
        names = tuple(name for name in entry.names if name.startswith(f"{HELPERS}."))
        if names:
            moved = tuple(f"{helpers}{name.removeprefix(HELPERS)}" for name in names)
            yield kind, msgspec.structs.replace(entry, names=moved)


@functools.cache
def own_rows(kept: bytes) -> tuple[tuple[str, CatalogEntry], ...]:
    """Return the entries of that catalog, each with its kind."""
    try:
        return tuple(_unpacked(kept))
    except (msgspec.DecodeError, ValueError, KeyError):
        texts = files().items()
        return tuple(pair for framework, text in texts for pair in parse(text, f"{framework}.toml"))


def packed() -> bytes:
    """Give our own entries in a form that is read much faster than the files."""
    tables: dict[str, list[CatalogEntry]] = {}
    for kind, entry in own_rows(b""):
        tables.setdefault(kind, []).append(entry)
    return msgspec.msgpack.encode(tables)


def _unpacked(kept: bytes) -> Iterator[tuple[str, CatalogEntry]]:
    """Read what `packed` gave: kind by kind, and within a kind in the order of the files.

    Raises:
        msgspec.DecodeError: It is empty or damaged.
        ValueError: The same.
        KeyError: There is no such kind.
    """
    for kind, rows in msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode(kept).items():
        for entry in msgspec.msgpack.Decoder(list[KINDS[kind]]).decode(rows):  # type: ignore[valid-type]
            yield kind, entry


def parse(text: str, origin: str) -> Iterator[tuple[str, CatalogEntry]]:
    """Read one catalog file.

    Args:
        text: The TOML document.
        origin: The file's name, for errors.

    Yields:
        Pairs of kind and entry.

    Raises:
        CatalogError: The document or an entry is malformed.
    """
    from fsrace_lint.catalog import reading  # noqa: PLC0415  # as in `files`

    yield from reading.read(reading.document(text, origin), origin)
