"""Lookup of the functions that use a name, in all files at once or in the heads of files."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.engine.query import query
from fsrace_lint.program.grouping import where
from fsrace_lint.program.symbols import is_property

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from fsrace_lint.program.modules import LinkedFunction, Module
    from fsrace_lint.program.name_index import NameIndex
    from fsrace_lint.syntax import model as m

_A_FEW: Final = 12
"""The number of names that are searched for one by one."""


class NameLookup:
    """A lookup of names in the files of a project. The first lookup reads all files."""

    def __init__(self, modules: Iterable[Module]) -> None:
        """Initialize with the files, without reading them."""
        self._modules = tuple(modules)

    @functools.cached_property
    def _callers(self) -> dict[str, tuple[LinkedFunction, ...]]:
        return where((function, function.facts.called) for function in self._functions())

    @functools.cached_property
    def _others(self) -> dict[str, tuple[LinkedFunction, ...]]:
        return where((function, function.facts.only_read) for function in self._functions())

    def _functions(self) -> Iterator[LinkedFunction]:
        return (function for module in self._modules for function in module.functions)

    @functools.cached_property
    def _aliases(self) -> dict[str, list[tuple[m.Alias, LinkedFunction]]]:
        found: dict[str, list[tuple[m.Alias, LinkedFunction]]] = {}
        for module in self._modules:
            for function in module.functions:
                for alias in aliases_in(function):
                    found.setdefault(alias.name, []).append((alias, function))
        return found

    def readers(self, name: str) -> tuple[LinkedFunction, ...]:
        """Return the functions whose code reads or binds a name, in the order of the project."""
        found = (*self._callers.get(name, ()), *self._others.get(name, ()))
        return tuple(sorted(found, key=lambda function: function.order))

    def callers(self, name: str) -> tuple[LinkedFunction, ...]:
        """Return the functions that call a name or pass it on, in the order of the project."""
        return self._callers.get(name, ())

    def callers_of(self, name: str, modules: Container[Module]) -> Sequence[LinkedFunction]:
        """Return the callers of a name that may refer to a definition in one of some files.

        Args:
            name: The name.
            modules: The files.

        Returns:
            The functions, possibly with additional ones.
        """
        del modules
        return self.callers(name)

    def aliases(self, name: str, called: bool) -> list[tuple[m.Alias, LinkedFunction]]:  # noqa: FBT001  # parts of one key
        """Return the aliases of a name, each with the function that creates it.

        Unless `called`, aliases of the results of calls may be missing.
        """
        del called
        return self._aliases.get(name, [])

    @property
    def denoting(self) -> frozenset[str] | None:
        """A superset of the names of functions and classes, or None if it was not computed."""
        return None


class IndexedLookup(NameLookup):
    """A lookup of names by the heads of files. Files without the name are not read."""

    def __init__(self, modules: Iterable[Module], heads: NameIndex) -> None:
        """Initialize with the files and their heads, without reading them."""
        super().__init__(modules)
        self._heads = heads
        self._sought = 0

    @query
    def _naming(self, name: str) -> tuple[Module, ...]:
        """Return the files that mention a name.

        The first few names are searched for file by file, because sorting all names of all files takes as
        long as about a dozen such searches.
        """
        self._sought += 1
        if self._sought > _A_FEW or self._heads.is_ordered("referenced_names"):
            found = [self._modules[place] for place in self._heads.having("referenced_names", name)]
        else:
            heads = ((module, module.head) for module in self._modules)
            found = [
                each for each, head in heads if head.may_reference(name) and name in head.referenced_names
            ]
        return tuple(found)

    @query
    def readers(self, name: str) -> tuple[LinkedFunction, ...]:
        """Return the functions whose code reads or binds a name, in the order of the project."""
        functions = (f for module in self._naming(name) for f in module.functions)
        return tuple(function for function in functions if name in function.facts.referenced_names)

    def callers(self, name: str) -> tuple[LinkedFunction, ...]:
        """Return the functions that call a name or pass it on, in the order of the project."""
        mentioning = self._naming(name)
        return tuple(function for module in mentioning for function in self._calling_in(module, name))

    def callers_of(self, name: str, modules: Container[Module]) -> Sequence[LinkedFunction]:
        """Return the callers of a name that may refer to a definition in one of some files.

        Other files in which the name only refers to their own definition are not read.

        Args:
            name: The name.
            modules: The files.

        Returns:
            The functions.
        """
        mentioning = self._naming(name)
        meant = (each for each in mentioning if each in modules or name not in each.head.settled)
        return [function for module in meant for function in self._calling_in(module, name)]

    @query
    def _calling_in(self, module: Module, name: str) -> tuple[LinkedFunction, ...]:
        return tuple(function for function in module.functions if name in function.facts.called)

    @query
    def aliases(self, name: str, called: bool) -> list[tuple[m.Alias, LinkedFunction]]:  # noqa: FBT001  # parts of one key
        """Return the aliases of a name, each with the function that creates it.

        Unless `called`, aliases of the results of calls may be missing.
        """
        places = self._heads.having("further" if called else "aliased", name)
        functions = (function for place in places for function in self._modules[place].functions)
        found = ((alias, function) for function in functions for alias in aliases_in(function))
        return [each for each in found if each[0].name == name]

    @property
    def denoting(self) -> frozenset[str] | None:
        """A superset of the names of functions and classes."""
        return self._heads.denoting


def aliases_in(function: LinkedFunction) -> Iterator[m.Alias]:
    """Yield the aliases that a function creates; reading a property counts as calling it."""
    for alias in function.facts.aliases:
        yield alias
        if alias.returned and is_property(function):
            yield msgspec.structs.replace(alias, returned=False)
