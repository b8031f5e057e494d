"""Library models: the meaning of library names, as one TOML file per framework. Users can add their own."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fsrace_lint.catalog.arguments import ArgumentName, argument, flags
from fsrace_lint.catalog.entries import CatalogEntry, CatalogError, Effect, LockEntry, Op
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
"""The module with the safe helpers."""


class Catalog:
    """All library models, by kind and name. Later entries replace earlier ones of the same kind and name."""

    def __init__(self, found: Iterable[tuple[str, CatalogEntry]]) -> None:
        """Index entries, which are passed as pairs of kind and entry."""
        self._tables: dict[str, dict[str, CatalogEntry]] = {kind: {} for kind in KINDS}
        for kind, entry in found:
            for name in entry.names:
                self._tables[kind][name] = entry
        self.last_names: dict[str, frozenset[str]] = {
            kind: frozenset(name.rpartition(".")[2] for name in table) for kind, table in self._tables.items()
        }
        self._listed = frozenset(
            name for kind, table in self._tables.items() if kind != "command" for name in table
        )
        self._any: dict[tuple[tuple[str, ...], str], bool] = {}
        self._in_process = tuple(f"{name}." for name in self._tables["in-process"])
        self.libraries = frozenset(name.partition(".")[0] for name in self._listed if "." in name)
        """The top-level packages of all names that have an entry."""

    def names(self, kind: str) -> Iterable[str]:
        """Return the names that have an entry of a kind."""
        return self._tables[kind]

    def find(self, kind: str, name: str | None) -> Any:  # the type follows from the kind
        """Find the entry of a qualified name.

        Args:
            kind: One of `KINDS`.
            name: A qualified name, or None if it is unknown.

        Returns:
            The entry of the exact name, else the entry of `*.` and its last component, else None. The
            fallback does not apply to locks and barriers of in-process modules, such as `threading`.
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
        """Return the entry of the exact name, or None."""
        return self._tables[kind].get(name)

    def is_listed(self, name: str) -> bool:
        """Return whether the exact name has an entry of any kind."""
        return name in self._listed

    def is_any(self, kinds: tuple[str, ...], name: str | None) -> bool:
        """Return whether a name has an entry of one of some kinds."""
        if name is None:
            return False
        key = kinds, name
        if key not in self._any:
            self._any[key] = any(self.find(kind, name) is not None for kind in kinds)
        return self._any[key]

    def is_in_process(self, name: str) -> bool:
        """Return whether a name belongs to a module for threads or tasks of one process."""
        return name.startswith(self._in_process)


def files() -> dict[str, str]:
    """Return the text of the TOML files of this package, by framework, sorted by name."""
    import importlib.resources  # noqa: PLC0415  # not needed if the entries are cached

    found = importlib.resources.files(__package__).iterdir()
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in sorted(found, key=lambda file: file.name)
        if file.name.endswith(".toml")
    }


def load() -> Catalog:
    """Load the library models of this package, once per process.

    Raises:
        CatalogError: An entry is malformed.
    """
    return own_catalog(b"")


@functools.cache
def own_catalog(kept: bytes) -> Catalog:
    """Load the library models of this package, from their packed form or from their files."""
    return Catalog(own_rows(kept))


@functools.cache
def extended(
    users: tuple[tuple[str, str], ...] = (),
    helpers: tuple[str, ...] = (),
    kept: bytes = b"",
    named: tuple[tuple[str, str], ...] = (),
) -> Catalog:
    """Load the library models of this package together with the user's, which take precedence.

    Args:
        users: The user's tables as JSON, in the format of the TOML files. Each with the file and the table
            that contain them, for error messages. This is also the source of entries without one.
        helpers: The modules with the user's copies of the safe helpers.
        kept: The result of `packed`. If it is empty or damaged, the TOML files are read.
        named: The user's functions that do the same as a safe helper: the key of the setting for each, and
            its dotted name.

    Returns:
        The models, loaded once per process for the same arguments.

    Raises:
        CatalogError: An entry is malformed.
    """
    copied = [row for module in helpers for row in _copied(module, kept)]
    copied += [row for key, name in named for row in _modeled(key, name, kept)]
    given = [row for tables, origin in users for row in _users(tables, origin)]
    return Catalog((*own_rows(kept), *copied, *given)) if copied or given else own_catalog(kept)


def validate(tables: str, origin: str) -> None:
    """Check the user's library models, as JSON with their origin.

    Raises:
        CatalogError: An entry is malformed.
    """
    _users(tables, origin)


@functools.cache
def _users(tables: str, origin: str) -> tuple[tuple[str, CatalogEntry], ...]:
    if not tables:
        return ()
    from fsrace_lint.catalog.reading import read  # noqa: PLC0415  # few users have their own models

    return tuple(read(msgspec.json.decode(tables), origin, default_source=origin))


def _copied(helpers: str, kept: bytes) -> Iterator[tuple[str, CatalogEntry]]:
    """Yield the models of the safe helpers, renamed for a copy of their module."""
    for kind, entry in own_rows(kept):
        names = tuple(name for name in entry.names if name.startswith(f"{HELPERS}."))
        if names:
            moved = tuple(f"{helpers}{name.removeprefix(HELPERS)}" for name in names)
            yield kind, msgspec.structs.replace(entry, names=moved)


def _modeled(key: str, name: str, kept: bytes) -> Iterator[tuple[str, CatalogEntry]]:
    """Yield the models of the function that does the same as a safe helper."""
    helper = f"{HELPERS}.{key.replace('-', '_')}"
    for kind, entry in own_rows(kept):
        if helper in entry.names:
            yield kind, msgspec.structs.replace(entry, names=(name,))
    if key == "lock":
        yield "lock", LockEntry(names=(name,), source="settings", kind="context", path="0:path", waits=False)


@functools.cache
def own_rows(kept: bytes) -> tuple[tuple[str, CatalogEntry], ...]:
    """Return the entries of this package, each with its kind."""
    try:
        return tuple(_unpacked(kept))
    except (msgspec.DecodeError, ValueError, KeyError):
        texts = files().items()
        return tuple(pair for framework, text in texts for pair in parse(text, f"{framework}.toml"))


def packed() -> bytes:
    """Return the entries of this package in a form that loads much faster than the files."""
    tables: dict[str, list[CatalogEntry]] = {}
    for kind, entry in own_rows(b""):
        tables.setdefault(kind, []).append(entry)
    return msgspec.msgpack.encode(tables)


def _unpacked(kept: bytes) -> Iterator[tuple[str, CatalogEntry]]:
    """Yield the entries that `packed` encoded, by kind, and within a kind in the order of the files.

    Raises:
        msgspec.DecodeError: The data is empty or damaged.
        ValueError: The data is damaged.
        KeyError: The data has an unknown kind.
    """
    for kind, rows in msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode(kept).items():
        for entry in msgspec.msgpack.Decoder(list[KINDS[kind]]).decode(rows):  # type: ignore[valid-type]
            yield kind, entry


def parse(text: str, origin: str) -> Iterator[tuple[str, CatalogEntry]]:
    """Parse one TOML file of library models.

    Args:
        text: The TOML document.
        origin: The name of the file, for error messages.

    Yields:
        Pairs of kind and entry.

    Raises:
        CatalogError: The document or an entry is malformed.
    """
    from fsrace_lint.catalog import reading  # noqa: PLC0415  # as in `files`

    yield from reading.read(reading.document(text, origin), origin)
