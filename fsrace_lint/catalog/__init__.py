"""What library names mean: effects, rank sources, guards, barriers, locks, private names.

The entries are data, one TOML file a framework. A name is either a qualified
one (`os.makedirs`, `pathlib.Path.mkdir`) or `*.last`, which means any callable
or attribute of that last name whose owner could not be determined, or is not
known to the catalog.
"""

from __future__ import annotations

import functools
import importlib.resources
import sys
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Scope = Literal["global", "local", "group", "filesystem"]
Op = Literal["probe", "list", "mkdir", "write", "delete", "rename", "copy", "extract"]


class CatalogError(Exception):
    """An entry that cannot be read; the message names the file, the kind and the key."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    names: tuple[str, ...]
    source: str


class Argument(msgspec.Struct, frozen=True):
    """Which argument of a call: a position, a keyword, or `self`, the object of a method."""

    position: int | None = None
    keyword: str | None = None

    @property
    def is_self(self) -> bool:
        """Whether it is the object whose method is called."""
        return self.keyword == "self"


class Effect(_Entry, frozen=True, kw_only=True):
    """A call that touches the filesystem at the path in argument `path`.

    Arguments are written `position:keyword`, either part may be missing, or
    `self`. `tolerant` lists the flags of which any makes the call accept the
    other process's result; `mode` is the argument that holds an open mode.
    """

    op: Op
    path: str
    tolerant: str = ""
    mode: str = ""


class Rank(_Entry, frozen=True, kw_only=True):
    """A call or attribute whose value is the number of this process in `scope`."""

    scope: Scope


class Guard(_Entry, frozen=True, kw_only=True):
    """A call or attribute that is true for the main process of `scope` alone.

    With `is_property` only the attribute is: a method of that name means something else.
    """

    scope: Scope
    is_property: bool = False


class World(_Entry, frozen=True, kw_only=True):
    """A fact about the whole job, equal on all processes: its size, or whether it was set up."""

    kind: Literal["size", "initialized"]


class Variable(_Entry, frozen=True, kw_only=True):
    """A usual name of a variable, parameter or attribute, believed where its value is not known."""

    means: Literal["rank", "guard", "size", "initialized"]
    scope: Scope = "global"


class Environment(_Entry, frozen=True, kw_only=True):
    """An environment variable that a launcher sets."""

    means: Literal["rank", "size"]
    scope: Scope = "global"


class Decorator(_Entry, frozen=True, kw_only=True):
    """A decorator whose function runs on the main process of `scope` alone."""

    scope: Scope


class RunOnce(_Entry, frozen=True, kw_only=True):
    """A helper that runs the function it is given on the main process of `scope` alone."""

    scope: Scope


class Hook(_Entry, frozen=True, kw_only=True):
    """A method of a class derived from a framework's, called on the main process of `scope` alone."""

    scope: Scope


class First(_Entry, frozen=True, kw_only=True):
    """A context in which the first process of `scope` runs the body before all others run it too."""

    scope: Scope


class Lock(_Entry, frozen=True, kw_only=True):
    """A lock between processes: a context manager, or a call that acquires or releases it."""

    kind: Literal["context", "acquire", "release"]


class Returns(_Entry, frozen=True, kw_only=True):
    """A call, or a property, whose result is an object of the class `type`."""

    type: str
    is_property: bool = False


class Plain(_Entry, frozen=True, kw_only=True):
    """An entry of which only the names matter."""


KINDS: Final[dict[str, type[_Entry]]] = {
    "effect": Effect,
    "rank": Rank,
    "guard": Guard,
    "world": World,
    "variable": Variable,
    "environment": Environment,
    "decorator": Decorator,
    "run-once": RunOnce,
    "first": First,
    "hook": Hook,
    "lock": Lock,
    "returns": Returns,
    "barrier": Plain,
    "collective": Plain,
    "collective-saver": Plain,
    "launch": Plain,
    "spawn": Plain,
    "program": Plain,
    "private": Plain,
    "exit": Plain,
    "suppressor": Plain,
    "object-store": Plain,
    "sink": Plain,
}


class Catalog:
    """All entries, found by kind and name."""

    def __init__(self, entries: Iterable[tuple[str, _Entry]]) -> None:
        """Index `entries`, pairs of kind and entry."""
        self._tables: dict[str, dict[str, _Entry]] = {kind: {} for kind in KINDS}
        for kind, entry in entries:
            for name in entry.names:
                self._tables[kind][name] = entry
        self.last_names: dict[str, frozenset[str]] = {
            kind: frozenset(name.rpartition(".")[2] for name in table) for kind, table in self._tables.items()
        }

    def find(self, kind: str, name: str | None) -> Any:  # the type follows from the kind
        """Look a qualified name up.

        Args:
            kind: One of KINDS.
            name: A qualified name, or None where it is not known.

        Returns:
            The entry of that very name, else the one for its last part, else None.
        """
        if name is None:
            return None
        table = self._tables[kind]
        return table.get(name) or table.get("*." + name.rpartition(".")[2])

    def exact(self, kind: str, name: str) -> Any:  # the type follows from the kind
        """Look a qualified name up without falling back to its last part."""
        return self._tables[kind].get(name)

    def is_any(self, kinds: Iterable[str], name: str | None) -> bool:
        """Tell whether a name has an entry of one of the kinds."""
        return any(self.find(kind, name) is not None for kind in kinds)


@functools.cache
def argument(text: str) -> Argument:
    """Parse `position:keyword`, `position`, `:keyword` or `self`."""
    if text == "self":
        return Argument(keyword="self")
    position, _, keyword = text.partition(":")
    return Argument(int(position) if position else None, keyword or None)


@functools.cache
def load() -> Catalog:
    """Read the catalog that is part of the package.

    Returns:
        The catalog, built once a process.

    Raises:
        CatalogError: An entry is malformed.
    """
    files = sorted(importlib.resources.files(__package__).iterdir(), key=lambda file: file.name)
    return Catalog(
        entry
        for file in files
        if file.name.endswith(".toml")
        for entry in parse(file.read_text(encoding="utf-8"), file.name)
    )


def parse(text: str, origin: str) -> Iterator[tuple[str, _Entry]]:
    """Read one catalog file.

    Args:
        text: The TOML document.
        origin: The file's name, for errors.

    Yields:
        Pairs of kind and entry.

    Raises:
        CatalogError: The document or an entry is malformed.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{origin}: {error}") from error
    for kind, rows in document.items():
        if kind not in KINDS:
            raise CatalogError(f"{origin}: unknown kind [[{kind}]]; the kinds are {', '.join(KINDS)}")
        if not isinstance(rows, list):
            raise CatalogError(f"{origin}: `{kind}` must be a list of tables, written [[{kind}]]")
        for number, row in enumerate(rows, 1):
            yield kind, _convert(row, kind, f"{origin}: [[{kind}]] number {number}")


def _convert(row: Any, kind: str, place: str) -> _Entry:  # TOML gives anything
    try:
        entry = msgspec.convert(row, KINDS[kind])
    except msgspec.ValidationError as error:
        raise CatalogError(f"{place}: {error}") from error
    if not entry.names or not all(entry.names):
        raise CatalogError(f"{place}: `names` must hold names")
    if not entry.source.strip():
        raise CatalogError(f"{place}: `source` must say where it was read")
    if isinstance(entry, Effect):
        _check_arguments(entry, place)
    return entry


def _check_arguments(effect: Effect, place: str) -> None:
    for key, text in (
        ("path", effect.path),
        ("mode", effect.mode or "self"),
        *(("tolerant", flag) for flag in effect.tolerant.split()),
    ):
        try:
            which = argument(text)
        except ValueError:
            which = Argument()
        if which.position is None and which.keyword is None:
            raise CatalogError(f"{place}: `{key}` must name an argument, as `0:path` or `self`, not {text!r}")
