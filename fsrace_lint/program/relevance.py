"""Where to look closer: who may use a name, call a function, or lead to something.

Nothing here decides what is found: what is relevant is looked at, and more may be. `exhaustive` looks at
everything, which takes longer and finds the same.
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
"""How many names and readers of them are gone through in the time that it takes to read a function."""

_Ways: TypeAlias = "tuple[frozenset[KnownName], frozenset[tuple[KnownName, int]]]"
"""The names of something, whichever class has them, and the first further ones of these."""

_Sought: TypeAlias = "tuple[dict[LinkedFunction, None], frozenset[str]]"
"""Who may call something or hand it on, and the last names by which."""


class Everything(frozenset[Any]):
    """Some items, beside which it has whatever it is asked for."""

    def __contains__(self, _item: object) -> bool:
        """Have everything."""
        return True

    def isdisjoint(self, _other: Iterable[object]) -> bool:
        """Have something in common with anything."""
        return False


EVERYTHING: Final = Everything()


class Relevance:
    """Finds the functions that need a closer look, by the names in their code."""

    def __init__(self, table: ModuleTable, *, targeted: bool = False) -> None:
        """Prepare for a project, of which few files are asked about, or many; nothing is looked at yet."""
        self._modules = table.modules
        self._targeted = targeted
        """Whether few files are asked about: then it is not worth while to look through all of them."""
        self._tables = IndexedLookup(table.modules, table.heads) if targeted else NameLookup(table.modules)
        self.further = AliasClosure(table, self._tables)
        self._sought: dict[LinkedFunction | _Ways, _Sought] = {}
        self.effort = 0
        """How many names, and readers of them, were gone through so far to find who may call a function."""

    @property
    def is_worth_reading_all(self) -> bool:
        """Whether to seek callers by names has cost as much as it does to read all functions."""
        return not self._targeted and self.effort > COST_OF_READING * self._count

    @lazy
    def _count(self) -> int:
        return sum(len(module.functions) for module in self._modules)

    @lazy
    def denoting(self) -> frozenset[str]:
        """The names that may denote functions of the project, and classes that have a constructor."""
        counted = self._tables.denoting
        if counted is not None:
            return counted
        called = self.called(function for module in self._modules for function in module.functions)
        reached = self.further.all_reached((name, False, None) for name in called)
        return frozenset({""}.union(name for name, _, _ in reached))

    @lazy
    def every(self) -> frozenset[str]:
        """The names by which any function of the project may be called or handed on."""
        return self.denoting | {LAMBDA}

    def filtered(self, find: Callable[[], Kinds], otherwise: Kinds) -> Kinds:
        """Find what is relevant, or take more for it where that takes longer than it saves.

        Args:
            find: Finds it.
            otherwise: What has all of it, and more.

        Returns:
            One of them.
        """
        return otherwise if self._targeted else find()

    def may_use(self, function: LinkedFunction, names: AbstractSet[str]) -> bool:
        """Tell whether the code of a function may use what has one of some names."""
        return not names.isdisjoint(function.facts.referenced_names)

    def reads(self, names: Iterable[str]) -> bool:
        """Tell whether any code reads or binds one of some names; this leaves out nothing."""
        return any(self._tables.readers(name) for name in names)

    def using(self, names: Iterable[str]) -> list[LinkedFunction]:
        """Give the functions whose code may use what has one of some names, in the order of the project."""
        found = {function for name in names for function in self._tables.readers(name)}
        return sorted(found, key=lambda function: function.order)

    def calling(self, name: str) -> tuple[LinkedFunction, ...]:
        """Give the functions whose code calls what has a name, or hands it on, in the same order."""
        return self._tables.callers(name)

    def library_names(self, names: Iterable[str]) -> frozenset[str]:
        """Give last names of what libraries have, and all by which it may be known in the project.

        The empty one is always among them: what is called may have none, as in `(one or other)()`.
        """
        return self._spelled((name, False, LIBRARY) for name in frozenset(names))

    def project_names(self, names: Iterable[str]) -> frozenset[str]:
        """Give names of functions of the project, and all by which they may be known, the empty one too."""
        return self._spelled((name, False, None) for name in frozenset(names))

    def _spelled(self, start: Iterable[KnownName]) -> frozenset[str]:
        return frozenset({""}.union(name for name, _, _ in self.further.reached(start)))

    @staticmethod
    def called(functions: Iterable[LinkedFunction]) -> set[str]:
        """Give the last names of the calls that run functions: their own, and those of classes."""
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
        """Give the functions that may call a function or hand it on, in the order of the project.

        It is one object for all functions that are sought in the same ways: it is long for some of these.
        """
        known, _ = self._seek(function)
        also = [each for each in self.naming_nobody(function) if each not in known]
        return _in_order((*known, *also)) if also else known

    def names(self, function: LinkedFunction) -> frozenset[str]:
        """Give the last names by which they may do so, but for those of `naming_nobody`."""
        return self._seek(function)[1]

    def search(
        self, function: LinkedFunction, *, handed: bool = False
    ) -> Iterator[tuple[LinkedFunction, AbstractSet[str]]]:
        """Give the same functions as they are found, each with names, in no order, some of them again.

        Those that call it and do not hand it on are left out where it is sought as one that is `handed` on.
        """
        yield from ((each, self.every) for each in self.naming_nobody(function))
        reached = self.further.reached(self._names_of(function))
        yield from ((each, {name}) for each, name in self._mentioning(reached, function, handed=handed))

    def _seek(self, function: LinkedFunction) -> _Sought:
        """Give who may call a function or hand it on by a name, and the names.

        Where few are asked about, those are left out who can only mean another one of the name. Else they are
        found once for all that lead on alike: the methods of one name differ in their classes, and
        hardly in what else they are called.
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
        """Give the names by which a function is called in any code."""
        if function.facts.name == LAMBDA:
            outer = function.module.functions[function.facts.parent]
            name = f"{LAMBDA}{function.index}"
            aliases = (alias for alias in outer.facts.aliases if alias.name == name and not alias.called)
            return tuple(bound(alias, outer, called=False) for alias in aliases)
        if function.facts.name == "__init__" and function.owner is not None:
            return tuple((class_.facts.name, False, None) for class_ in function.owner.descendants())
        return ((function.facts.name, False, owner_of(function)),)

    @staticmethod
    def naming_nobody(function: LinkedFunction) -> Iterator[LinkedFunction]:
        """Give functions whose code may call one by none of its names."""
        if function.facts.name == LAMBDA:
            yield function.module.functions[function.facts.parent]
        elif function.facts.name == "__init__" and function.owner is not None:
            yield from _constructing(function.owner, function.owner.descendants())

    def _mentioning(
        self, reached: Iterable[KnownName], function: LinkedFunction | None = None, *, handed: bool = False
    ) -> Iterator[tuple[LinkedFunction, str]]:
        """Give who calls or hands on what has some names, each with the name, some of them again.

        A name in one function is sought there alone. Where a `function` is sought, those are left out
        who can only mean another one.
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
        """Give who uses a name; perhaps without those in files where it is bare, and settled.

        There it can mean neither a function nor what is at home, if these stand elsewhere.
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
        """Sort who may call a function, where few are asked about: who is near has most often an answer."""
        if function is None or not self._targeted:
            return readers
        here = function.module
        modules = {reader.module for reader in readers}
        near = {module: common_folders(module.relative, here.relative) for module in modules}
        near[here] = len(here.relative)
        return sorted(readers, key=lambda reader: -near[reader.module])

    def _may_mean(self, function: LinkedFunction, name: str, home: Owner, reader: LinkedFunction) -> bool:
        """Tell whether who uses a name may mean a function by it, or what has it at home, as it is used."""
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
    """Finds everything relevant: the reference, which shows that nothing is overlooked."""

    def __init__(self, table: ModuleTable) -> None:
        """Prepare for a project."""
        super().__init__(table)
        self._all = tuple(function for module in table.modules for function in module.functions)

    @property
    def is_worth_reading_all(self) -> bool:
        """Have all functions read."""
        return True

    @property
    def denoting(self) -> frozenset[str]:
        """Any name."""
        return EVERYTHING

    @property
    def every(self) -> frozenset[str]:
        """Any name."""
        return EVERYTHING

    def filtered(self, find: Callable[[], Kinds], otherwise: Kinds) -> Kinds:
        """Take more for relevant than is."""
        del find
        return otherwise

    def may_use(self, function: LinkedFunction, names: AbstractSet[str]) -> bool:
        """Have any function use anything."""
        del function, names
        return True

    def using(self, names: Iterable[str]) -> list[LinkedFunction]:
        """Give all functions."""
        del names
        return list(self._all)

    def _spelled(self, start: Iterable[KnownName]) -> frozenset[str]:
        return Everything(super()._spelled(start))


def _in_order(functions: Iterable[LinkedFunction]) -> dict[LinkedFunction, None]:
    return dict.fromkeys(sorted(dict.fromkeys(functions), key=lambda function: function.order))


def _constructing(class_: LinkedClass, heirs: Iterable[LinkedClass]) -> Iterator[LinkedFunction]:
    """Give the code of a class and its relatives that calls its constructor by no name of the class."""
    for heir in heirs:
        inside = (function for method in heir.methods.values() for function in within(method))
        yield from (function for function in inside if "__init__" in function.facts.referenced_names)
    for relative in dict.fromkeys((*class_.ancestors(), *heirs)):
        for method in relative.methods.values():
            if method.facts.decorators and method.facts.parameters:
                first = method.facts.parameters[0].name
                yield from (f for f in within(method) if first in f.facts.referenced_names)
