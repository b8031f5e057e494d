"""Narrowing of searches: which functions may use a name, call a function, or lead to an operation.

Nothing here decides what is found: the result is a superset of what is relevant. `Exhaustive` selects
everything, which takes longer and has the same findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.alias_closure import (
    LIBRARY,
    AliasClosure,
    are_related,
    bound,
    owner_of,
    within,
)
from fsrace_lint.program.module_table import common_folders
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.name_lookup import IndexedLookup, NameLookup
from fsrace_lint.syntax.model import BARE, HANDED, LAMBDA, OF_OTHER, OF_OWN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from fsrace_lint.program.alias_closure import KnownName, Owner
    from fsrace_lint.program.module_table import ModuleTable

Kinds = TypeVar("Kinds")

COST_OF_READING: Final = 10
"""The number of names and readers that can be visited in the time it takes to read one function."""

_Ways: TypeAlias = "tuple[frozenset[KnownName], frozenset[tuple[KnownName, int]]]"
"""The names of a function regardless of class, and their first aliases."""

_Sought: TypeAlias = "tuple[dict[LinkedFunction, None], frozenset[str]]"
"""The functions that may call a function or pass it on, and the names that they use for it."""


class Everything(frozenset[Any]):
    """A set that claims to contain every item."""

    def __contains__(self, _item: object) -> bool:
        """Return True."""
        return True

    def isdisjoint(self, _other: Iterable[object]) -> bool:
        """Return False."""
        return False


EVERYTHING: Final = Everything()


class Relevance:
    """A finder of the functions to examine more closely, by the names in their code."""

    def __init__(self, table: ModuleTable, *, targeted: bool = False) -> None:
        """Initialize for a project, without reading anything.

        Args:
            table: The files.
            targeted: Whether only a few files are checked.
        """
        self._modules = table.modules
        self._targeted = targeted
        """Whether only a few files are checked, so that reading all files does not pay."""
        self._tables = IndexedLookup(table.modules, table.heads) if targeted else NameLookup(table.modules)
        self.further = AliasClosure(table, self._tables)
        self._sought: dict[LinkedFunction | _Ways, _Sought] = {}
        self.effort = 0
        """The number of names and readers visited so far in the search for callers."""

    @property
    def is_worth_reading_all(self) -> bool:
        """Whether the search for callers by name has cost as much as reading all functions would."""
        return not self._targeted and self.effort > COST_OF_READING * self._count

    @lazy
    def _count(self) -> int:
        return sum(len(module.functions) for module in self._modules)

    @lazy
    def denoting(self) -> frozenset[str]:
        """A superset of the names that may denote functions of the project, or classes with a constructor."""
        counted = self._tables.denoting
        if counted is not None:
            return counted
        called = self.called(function for module in self._modules for function in module.functions)
        reached = self.further.all_reached((name, False, None) for name in called)
        return frozenset({""}.union(name for name, _, _ in reached))

    @lazy
    def every(self) -> frozenset[str]:
        """The names by which any function of the project may be called or passed on."""
        return self.denoting | {LAMBDA}

    def filtered(self, find: Callable[[], Kinds], otherwise: Kinds) -> Kinds:
        """Return what is relevant, or a superset if computing it takes longer than it saves.

        Args:
            find: Computes what is relevant.
            otherwise: The superset.
        """
        return otherwise if self._targeted else find()

    def may_use(self, function: LinkedFunction, names: AbstractSet[str]) -> bool:
        """Return whether the code of a function may use one of some names."""
        return not names.isdisjoint(function.facts.referenced_names)

    def reads(self, names: Iterable[str]) -> bool:
        """Return whether any code reads or binds one of some names; exact, not a superset."""
        return any(self._tables.readers(name) for name in names)

    def using(self, names: Iterable[str]) -> list[LinkedFunction]:
        """Return the functions whose code may use one of some names, in the order of the project."""
        found = {function for name in names for function in self._tables.readers(name)}
        return sorted(found, key=lambda function: function.order)

    def calling(self, name: str) -> tuple[LinkedFunction, ...]:
        """Return the functions whose code calls a name or passes it on, in the order of the project."""
        return self._tables.callers(name)

    def library_names(self, names: Iterable[str]) -> frozenset[str]:
        """Return last components of library names, and all names that may denote them in the project.

        The empty name is always included, because a callee can be unnamed, as in `(one or other)()`.
        """
        return self._spelled((name, False, LIBRARY) for name in frozenset(names))

    def project_names(self, names: Iterable[str]) -> frozenset[str]:
        """Return names of project functions, and all names that may denote them, including the empty name."""
        return self._spelled((name, False, None) for name in frozenset(names))

    def _spelled(self, start: Iterable[KnownName]) -> frozenset[str]:
        return frozenset({""}.union(name for name, _, _ in self.further.reached(start)))

    @staticmethod
    def called(functions: Iterable[LinkedFunction]) -> set[str]:
        """Return the last names in calls of functions: function names, and class names for constructors."""
        names: set[str] = set()
        for function in functions:
            name = function.facts.name
            names.add(f"{LAMBDA}{function.index}" if name == LAMBDA else name)
            if function.facts.name == "__init__" and function.owner is not None:
                names.update(heir.facts.name for heir in function.owner.descendants())
                related = (*function.owner.ancestors(), *function.owner.descendants())
                methods = (method for class_ in related for method in class_.methods.values())
                names.update(method.facts.parameters[0].name for method in methods if method.facts.parameters)
        return names

    @query
    def candidate_callers(self, function: LinkedFunction) -> Collection[LinkedFunction]:
        """Return the functions that may call a function or pass it on, in the order of the project.

        Functions that are searched for by the same names share one result object, because it can be long.
        """
        known, _ = self.naming(function)
        also = [each for each in self.naming_nobody(function) if each not in known]
        return _in_order((*known, *also)) if also else known

    def search(
        self, function: LinkedFunction, *, handed: bool = False
    ) -> Iterator[tuple[LinkedFunction, str]]:
        """Yield the functions that may call a function by name as they are found, each with the name.

        The order is arbitrary, and callers can repeat. If `handed`, callers that only call the function, and
        never pass it on, can be left out.
        """
        return self._mentioning(self.further.reached(self._names_of(function)), function, handed=handed)

    def naming(self, function: LinkedFunction) -> _Sought:
        """Return the functions that may call a function or pass it on by name, in order, and the names.

        If only a few files are checked, callers that can only mean another function of the name are excluded.
        Otherwise one result is shared by all functions with the same names and aliases: methods of one name
        differ in their class, but rarely in their other names.
        """
        start = self._names_of(function)
        key = function if self._targeted else self._ways(start)
        if key not in self._sought:
            self._sought[key] = self._mentioned(start, function if self._targeted else None)
        return self._sought[key]

    def _ways(self, start: tuple[KnownName, ...]) -> _Ways:
        names = frozenset(
            (name, called, home if isinstance(home, LinkedFunction) else None) for name, called, home in start
        )
        return names, frozenset(item for known in start for item in self.further.of(known).items())

    def _mentioned(self, start: tuple[KnownName, ...], function: LinkedFunction | None) -> _Sought:
        reached = list(self.further.reached(start))
        known = frozenset(name for name, called, _ in reached if not called)
        return _in_order(each for each, _ in self._mentioning(reached, function)), known

    def _names_of(self, function: LinkedFunction) -> tuple[KnownName, ...]:
        """Return the names by which any code can call a function."""
        if function.facts.name == LAMBDA:
            outer = function.module.functions[function.facts.parent]
            name = f"{LAMBDA}{function.index}"
            aliases = (alias for alias in outer.facts.aliases if alias.name == name and not alias.called)
            return tuple(bound(alias, outer, called=False) for alias in aliases)
        if function.facts.name == "__init__" and function.owner is not None:
            return tuple((class_.facts.name, False, None) for class_ in function.owner.descendants())
        return ((function.facts.name, False, owner_of(function)),)

    def naming_nobody(self, function: LinkedFunction) -> Iterator[LinkedFunction]:
        """Yield the functions whose code may call a function without one of its names."""
        if function.facts.name == LAMBDA:
            yield function.module.functions[function.facts.parent]
        elif function.facts.name == "__init__" and function.owner is not None:
            heirs = function.owner.descendants()
            for heir in heirs:
                yield from self._naming_constructor(heir)
            for relative in dict.fromkeys((*function.owner.ancestors(), *heirs)):
                yield from self._naming_first_parameter(relative)

    @query
    def _naming_constructor(self, class_: LinkedClass) -> tuple[LinkedFunction, ...]:
        """Return the code of a class that names `__init__`, as `super().__init__()` does."""
        inside = (function for method in class_.methods.values() for function in within(method))
        return tuple(function for function in inside if "__init__" in function.facts.referenced_names)

    @query
    def _naming_first_parameter(self, class_: LinkedClass) -> tuple[LinkedFunction, ...]:
        """Return the code of decorated methods that names their first parameter, which may be the class."""
        decorated = (method for method in class_.methods.values() if method.facts.decorators)
        return tuple(
            function
            for method in decorated
            if method.facts.parameters
            for function in within(method)
            if method.facts.parameters[0].name in function.facts.referenced_names
        )

    def _mentioning(
        self, reached: Iterable[KnownName], function: LinkedFunction | None = None, *, handed: bool = False
    ) -> Iterator[tuple[LinkedFunction, str]]:
        """Yield functions that call some names or pass them on, each with the name, with repetitions.

        A name that a function owns is searched for in that function only. If `function` is passed, callers
        that can only mean another function are excluded.
        """
        told = set()
        for name, called, home in reached:
            self.effort += 1
            if called:
                continue
            if isinstance(home, LinkedFunction):
                yield from ((each, name) for each in self.further.inside(home) if name in each.facts.called)
                continue
            key = name, home if function is not None else None
            if key not in told:
                told.add(key)
                readers = self._readers(name, home, function)
                self.effort += len(readers)
                for reader in self._from_near(function, readers):
                    if handed and not reader.facts.use(name) & HANDED:
                        continue
                    if function is None or self._may_mean(function, name, home, reader):
                        yield reader, name

    def _readers(self, name: str, home: Owner, function: LinkedFunction | None) -> Sequence[LinkedFunction]:
        """Return the functions that use a name.

        Files where the bare name can only mean their own definition may be excluded, unless they define the
        function or its owner.
        """
        if function is None:
            return self.calling(name)
        meant = {function.module}
        if isinstance(home, LinkedClass):
            meant.add(home.module)
        return self._tables.callers_of(name, meant)

    def _from_near(
        self, function: LinkedFunction | None, readers: Sequence[LinkedFunction]
    ) -> Sequence[LinkedFunction]:
        """Sort callers by proximity if only a few files are checked: near callers are right most often."""
        if function is None or not self._targeted:
            return readers
        here = function.module
        modules = {reader.module for reader in readers}
        near = {module: common_folders(module.relative, here.relative) for module in modules}
        near[here] = len(here.relative)
        return sorted(readers, key=lambda reader: -near[reader.module])

    def _may_mean(self, function: LinkedFunction, name: str, home: Owner, reader: LinkedFunction) -> bool:
        """Return whether the use of a name in a function may refer to another function or to its owner."""
        how = reader.facts.use(name)
        if how & (OF_OTHER | HANDED) or (how & OF_OWN and not reader.takes_object):
            return True
        if isinstance(home, LinkedClass):
            own = bool(how & OF_OWN) and are_related(home, reader.owner)
            return own or (bool(how & BARE) and reader.module is home.module)
        meant = self.further.settled_in(reader.module).get(name) if how == BARE else None
        if isinstance(meant, LinkedClass):
            return function.owner is not None and are_related(function.owner, meant)
        return meant is None or meant.module is function.module


class Exhaustive(Relevance):
    """The reference implementation: everything is relevant, which shows that nothing is overlooked."""

    def __init__(self, table: ModuleTable) -> None:
        """Initialize for a project."""
        super().__init__(table)
        self._all = tuple(function for module in table.modules for function in module.functions)

    @property
    def is_worth_reading_all(self) -> bool:
        """Always True."""
        return True

    @property
    def denoting(self) -> frozenset[str]:
        """Every name."""
        return EVERYTHING

    @property
    def every(self) -> frozenset[str]:
        """Every name."""
        return EVERYTHING

    def filtered(self, find: Callable[[], Kinds], otherwise: Kinds) -> Kinds:
        """Return the superset."""
        del find
        return otherwise

    def may_use(self, function: LinkedFunction, names: AbstractSet[str]) -> bool:
        """Return True."""
        del function, names
        return True

    def using(self, names: Iterable[str]) -> list[LinkedFunction]:
        """Return all functions."""
        del names
        return list(self._all)

    def _spelled(self, start: Iterable[KnownName]) -> frozenset[str]:
        return Everything(super()._spelled(start))


def _in_order(functions: Iterable[LinkedFunction]) -> dict[LinkedFunction, None]:
    return dict.fromkeys(sorted(dict.fromkeys(functions), key=lambda function: function.order))
