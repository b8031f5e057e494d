"""Where the names of a project stand: looked up in all files at once, or in the heads of files."""

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
"""So many names are looked for by themselves."""


class NameLookup:
    """Finds names in the files of a project, all of which are looked at the first time."""

    def __init__(self, modules: Iterable[Module]) -> None:
        """Take the files; nothing is looked at yet."""
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
        """Give the functions whose code reads or binds a name, in the order of the project."""
        found = (*self._callers.get(name, ()), *self._others.get(name, ()))
        return tuple(sorted(found, key=lambda function: function.order))

    def callers(self, name: str) -> tuple[LinkedFunction, ...]:
        """Give the functions whose code calls what has a name, or hands it on, in the same order."""
        return self._callers.get(name, ())

    def callers_of(self, name: str, modules: Container[Module]) -> Sequence[LinkedFunction]:
        """Give the same as far as they may mean what stands in some files; others may be among them.

        Args:
            name: The name.
            modules: The files.

        Returns:
            The functions.
        """
        del modules
        return self.callers(name)

    def aliases(self, name: str, called: bool) -> list[tuple[m.Alias, LinkedFunction]]:  # noqa: FBT001  # parts of one key
        """Give the further names of what has a name, each with the function that gives it.

        Those of what calls of the name give may be left out, if they are not `called` for.
        """
        del called
        return self._aliases.get(name, [])

    @property
    def denoting(self) -> frozenset[str] | None:
        """Names by which functions and classes are known, more than there are; None where nobody counted."""
        return None


class IndexedLookup(NameLookup):
    """Finds them by the heads of files: a file without a name is not looked at."""

    def __init__(self, modules: Iterable[Module], heads: NameIndex) -> None:
        """Take the files and their heads; nothing is looked at yet."""
        super().__init__(modules)
        self._heads = heads
        self._sought = 0

    @query
    def _naming(self, name: str) -> tuple[Module, ...]:
        """Give the files that mention a name.

        The first few names are looked for in one file after the other: to put all names of all files in
        order takes as long as that does for a dozen.
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
        """Give the functions whose code reads or binds a name, in the order of the project."""
        functions = (f for module in self._naming(name) for f in module.functions)
        return tuple(function for function in functions if name in function.facts.referenced_names)

    def callers(self, name: str) -> tuple[LinkedFunction, ...]:
        """Give the functions whose code calls what has a name, or hands it on, in the same order."""
        mentioning = self._naming(name)
        return tuple(function for module in mentioning for function in self._calling_in(module, name))

    def callers_of(self, name: str, modules: Container[Module]) -> Sequence[LinkedFunction]:
        """Give the same as far as they may mean what stands in some files.

        A file that calls a function of its own by the name, and nothing else, is not looked at.

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
        """Give the further names of what has a name, each with the function that gives it.

        Those of what calls of the name give may be left out, if they are not `called` for.
        """
        places = self._heads.having("further" if called else "aliased", name)
        functions = (function for place in places for function in self._modules[place].functions)
        found = ((alias, function) for function in functions for alias in aliases_in(function))
        return [each for each in found if each[0].name == name]

    @property
    def denoting(self) -> frozenset[str] | None:
        """Names by which functions and classes are known, more than there are."""
        return self._heads.denoting


def aliases_in(function: LinkedFunction) -> Iterator[m.Alias]:
    """Give the further names that a function gives; to read a property is to call it."""
    for alias in function.facts.aliases:
        yield alias
        if alias.returned and is_property(function):
            yield msgspec.structs.replace(alias, returned=False)
