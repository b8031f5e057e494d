"""The names in a file, without its code, for searches through many files."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.model import BARE
from fsrace_lint.syntax.traversal import bound_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.syntax import model as m

HERE: Final = "."
"""The name in `imported` of a package that is imported by dots only."""


class NameIndexEntry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The names in a file, called its head. Each field may have extra names, and lacks none.

    Attributes:
        referenced_names: The names that functions read or bind.
        aliased: The names that have aliases.
        results: The names of functions whose results have aliases.
        denoting: The names of functions and classes, their aliases, and the first parameters of methods.
        renamed: Imports under another name, as pairs of the imported and the local name.
        bases: The last names of the bases of classes.
        imported: The last names of modules that may be imported.
        classes: The names of classes.
        settled: The names of functions that mean nothing else here: they are bound once, called only as bare
            names, and not passed as arguments.
        texts: The string constants that can be names, and the parts of what follows the last slash.
    """

    referenced_names: tuple[str, ...] = ()
    aliased: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    denoting: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    bases: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    settled: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


class ComputedIndexEntry:
    """The head of a file with loaded facts; each field is computed on first access."""

    def __init__(self, facts: m.FileFacts) -> None:
        """Initialize with the facts."""
        self._facts = facts

    def may_reference(self, name: str) -> bool:
        """Return whether functions may read or bind a name."""
        return name in self.referenced_names

    def _aliases(self) -> Iterator[m.Alias]:
        return (alias for function in self._facts.functions for alias in function.aliases)

    @functools.cached_property
    def referenced_names(self) -> tuple[str, ...]:
        """The names that functions read or bind."""
        return _sorted(name for function in self._facts.functions for name in function.referenced_names)

    @functools.cached_property
    def aliased(self) -> tuple[str, ...]:
        """The names that have aliases."""
        return _sorted(alias.name for alias in self._aliases() if not alias.called)

    @functools.cached_property
    def results(self) -> tuple[str, ...]:
        """The names of functions whose results have aliases."""
        return _sorted(alias.name for alias in self._aliases() if alias.called)

    @functools.cached_property
    def denoting(self) -> tuple[str, ...]:
        """The names that may denote functions and classes."""
        names = _aliases_in(self._facts)
        return _sorted(names.union(function.name for function in self._facts.functions))

    @functools.cached_property
    def renamed(self) -> tuple[tuple[str, str], ...]:
        """Imports under another name, as pairs of the imported and the local name."""
        return tuple(sorted(_renamed(self._facts)))

    @functools.cached_property
    def bases(self) -> tuple[str, ...]:
        """The last names of the bases of classes."""
        return _sorted(last_name(base) for class_ in self._facts.classes for base in class_.bases)

    @functools.cached_property
    def imported(self) -> tuple[str, ...]:
        """The last names of modules that may be imported."""
        return _sorted(_imported(self._facts.imports))

    @functools.cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of classes."""
        return _sorted(class_.name for class_ in self._facts.classes)

    @functools.cached_property
    def settled(self) -> tuple[str, ...]:
        """The names of functions that mean nothing else here."""
        functions = self._facts.functions
        found = {one.name for one in functions[1:] if one.owner < 0 and one.parent == 0}
        found.difference_update(bound_in(functions[0]), self.classes)
        for function in functions:
            found.difference_update(function.outer_names)
            uses = zip(function.called, function.uses, strict=True)
            found.difference_update(name for name, use in uses if use != BARE)
        return _sorted(found)

    @functools.cached_property
    def texts(self) -> tuple[str, ...]:
        """The string constants that can be names, and the parts of what follows the last slash in them."""
        return _sorted(part for text in self._facts.texts for part in (text, *_parts(text)))


class PackedIndexEntry:
    """The head of a file in encoded form; each field is decoded on first access, and most never are."""

    referenced_names: tuple[str, ...]
    aliased: tuple[str, ...]
    results: tuple[str, ...]
    denoting: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    bases: tuple[str, ...]
    imported: tuple[str, ...]
    classes: tuple[str, ...]
    settled: tuple[str, ...]
    texts: tuple[str, ...]

    def __init__(self, parts: Sequence[msgspec.Raw]) -> None:
        """Initialize with the encoded fields of a head, in order.

        Raises:
            ValueError: The number of fields is wrong.
        """
        if len(parts) != len(NameIndexEntry.__struct_fields__):
            raise ValueError("no head of a file")
        self._parts = parts

    def __getattr__(self, field: str) -> Any:
        """Decode a field, and store it as an attribute."""
        if field not in NameIndexEntry.__struct_fields__:
            raise AttributeError(field)
        part = self._parts[NameIndexEntry.__struct_fields__.index(field)]
        found: Any = _pairs_of(part) if field == "renamed" else _names_of(part)
        setattr(self, field, found)
        return found

    def may_reference(self, name: str) -> bool:
        """Return whether functions may read or bind a name, by a search in the encoded names."""
        return name.encode("utf-8", "surrogatepass") in bytes(self._parts[0])

    def whole(self) -> NameIndexEntry:
        """Decode all fields."""
        return NameIndexEntry(*(getattr(self, field) for field in NameIndexEntry.__struct_fields__))


_names_of: Final = msgspec.msgpack.Decoder(tuple[str, ...]).decode
_pairs_of: Final = msgspec.msgpack.Decoder(tuple[tuple[str, str], ...]).decode


def _aliases_in(facts: m.FileFacts) -> set[str]:
    """Return the names that may denote functions and classes, except the names of functions."""
    names = {class_.name for class_ in facts.classes}
    names.update(f.parameters[0].name for f in facts.functions if f.owner >= 0 and f.parameters)
    names.update(local for _, local in _renamed(facts))
    for function in facts.functions:
        names.update(alias.known_as for alias in function.aliases)
    return names


def _renamed(facts: m.FileFacts) -> set[tuple[str, str]]:
    rows = (row for row in facts.imports if row.name is not None and row.name != row.local)
    return {(row.name or "", row.local) for row in rows}


def head_of(facts: m.FileFacts) -> NameIndexEntry:
    """Compute the head of a file.

    Args:
        facts: The facts of the file.

    Returns:
        The names, sorted.
    """
    names = ComputedIndexEntry(facts)
    return NameIndexEntry(*(getattr(names, field) for field in NameIndexEntry.__struct_fields__))


def _imported(rows: Iterable[m.Import]) -> Iterator[str]:
    for row in rows:
        yield row.module.rpartition(".")[2] or HERE
        if row.name is not None:
            yield row.name


def _parts(text: str) -> Iterator[str]:
    file = text.rpartition("/")[2]
    yield file
    yield from file.replace(":", ".").split(".")


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))
