"""Where the functions of a project are mentioned, by their names and by others that they are given."""

from __future__ import annotations

import builtins
import functools
from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.facts.model import BARE, HANDED, LAMBDA, OF_OTHER, OF_OWN, UNNAMED
from fsrace_lint.project.names.bindings import bound_names
from fsrace_lint.project.names.imports import common_folders
from fsrace_lint.project.names.members import DEEPEST
from fsrace_lint.project.names.modules import LinkedClass, LinkedFunction
from fsrace_lint.project.names.tables import Headed, Tables, aliases_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from fsrace_lint.facts import model as m
    from fsrace_lint.project.names.imports import ModuleTable
    from fsrace_lint.project.names.modules import Module

_Home: TypeAlias = "LinkedFunction | LinkedClass | str | None"
_LIBRARY: Final = "library"
_BUILT_IN: Final = frozenset(vars(builtins))

_STEPS: Final = {False: 2, True: 3}
"""How many steps the resolver takes at least from a further name to what it stands for, and from a call of
what returns that. A name of what is called costs nothing: it is resolved by itself."""

_Known: TypeAlias = "tuple[str, bool, _Home]"
"""A name, whether a call of it gives what is looked for, and whose name it is: a variable of a
function, an attribute of the objects of a class, of a library; None where anybody may have it."""

_Ways: TypeAlias = "tuple[frozenset[_Known], frozenset[tuple[_Known, int]]]"
"""The names of something, whichever class has them, and the first further ones of these."""

_Sought: TypeAlias = "tuple[dict[LinkedFunction, None], frozenset[str]]"
"""Who may call something or hand it on, and the last names by which."""


class Mentions:
    """Finds the functions in whose code another one may be meant: a few of all, which need a closer look."""

    def __init__(self, table: ModuleTable, *, asks_few: bool = False) -> None:
        """Prepare for a project, of which few files are asked about, or many; nothing is looked at yet."""
        self._modules = table.modules
        self._table = table
        self._asks_few = asks_few
        self._tables = Headed(table.modules) if asks_few else Tables(table.modules)
        self._own: dict[LinkedFunction, frozenset[str]] = {}
        self._defined: dict[Module, set[str]] = {}
        self._settled: dict[Module, dict[str, LinkedFunction | LinkedClass]] = {}
        self._found: dict[LinkedFunction, dict[LinkedFunction, None]] = {}
        self._sought: dict[LinkedFunction | _Ways, _Sought] = {}
        self._further: dict[_Known, dict[_Known, int]] = {}
        self._inside: dict[LinkedFunction, tuple[LinkedFunction, ...]] = {}
        self.effort = 0
        """How many names, and mentions of them, were gone through so far to find who may call a function."""

    def imported_as(self, name: str) -> set[str]:
        """Give the names under which imports of the project bind `name`."""
        return self._table.renamed.get(name, set())

    @functools.cached_property
    def denoting(self) -> frozenset[str]:
        """The names that may denote functions of the project, and classes that have a constructor."""
        counted = self._tables.denoting
        functions = (function for module in self._modules for function in module.functions)
        return self.names_for(self.called(functions)) if counted is None else counted

    @functools.cached_property
    def every(self) -> frozenset[str]:
        """The names by which any function of the project may be called or handed on."""
        return self.denoting | {LAMBDA}

    def of_name(self, name: str) -> tuple[LinkedFunction, ...]:
        """Give the functions whose code reads or binds a name, in the order of the project."""
        return self._tables.readers(name)

    def calling(self, name: str) -> tuple[LinkedFunction, ...]:
        """Give the functions whose code calls what has a name, or hands it on, in the same order."""
        return self._tables.callers(name)

    def names_of_library(self, names: Iterable[str]) -> frozenset[str]:
        """Give last names of what libraries have, and all by which it may be known in the project.

        The empty one is always among them: what is called may have none, as in `(one or other)()`.
        """
        known = frozenset(names)
        reached = self._reached((name, False, _LIBRARY) for name in known)
        return known.union({""}, (name for name, _, _ in reached))

    def names_for(self, names: Iterable[str]) -> frozenset[str]:
        """Give names of functions of the project, and all by which they may be known, the empty one too."""
        known = frozenset(names)
        reached = self._reached((name, False, None) for name in known)
        return known.union({""}, (name for name, _, _ in reached))

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

    def of(self, function: LinkedFunction) -> Collection[LinkedFunction]:
        """Give the functions that may call a function or hand it on, in the order of the project.

        It is one object for all functions that are sought in the same ways: it is long for some of these.
        """
        if function not in self._found:
            known, _ = self._seek(function)
            also = [each for each in self.naming_nobody(function) if each not in known]
            self._found[function] = _in_order((*known, *also)) if also else known
        return self._found[function]

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
        reached = self._reached(self._names_of(function))
        yield from ((each, {name}) for each, name in self._mentioning(reached, function, handed=handed))

    def _seek(self, function: LinkedFunction) -> _Sought:
        """Give who may call a function or hand it on by a name, and the names.

        Where few are asked about, those are left out who can only mean another one of the name. Else they are
        found once for all that lead on alike: the methods of one name differ in their classes, and
        hardly in what else they are called.
        """
        start = self._names_of(function)
        key = function if self._asks_few else self._ways(start)
        if key not in self._sought:
            self._sought[key] = self._mentioned(start, function if self._asks_few else None)
        return self._sought[key]

    def _ways(self, start: tuple[_Known, ...]) -> _Ways:
        names = frozenset(
            (name, called, home if isinstance(home, LinkedFunction) else None) for name, called, home in start
        )
        return names, frozenset(item for known in start for item in self._further_of(known).items())

    def _mentioned(self, start: tuple[_Known, ...], function: LinkedFunction | None) -> _Sought:
        reached = list(self._reached(start))
        known = frozenset(name for name, called, _ in reached if not called)
        return _in_order(each for each, _ in self._mentioning(reached, function)), known

    def _names_of(self, function: LinkedFunction) -> tuple[_Known, ...]:
        """Give the names by which a function is called in any code."""
        if function.facts.name == LAMBDA:
            outer = function.module.functions[function.facts.parent]
            name = f"{LAMBDA}{function.index}"
            aliases = (alias for alias in outer.facts.aliases if alias.name == name and not alias.called)
            return tuple(_bound(alias, outer, called=False) for alias in aliases)
        if function.facts.name == "__init__" and function.owner is not None:
            return tuple((class_.facts.name, False, None) for class_ in function.owner.descendants())
        return ((function.facts.name, False, _home_of(function)),)

    @staticmethod
    def naming_nobody(function: LinkedFunction) -> Iterator[LinkedFunction]:
        """Give functions whose code may call one by none of its names."""
        if function.facts.name == LAMBDA:
            yield function.module.functions[function.facts.parent]
        elif function.facts.name == "__init__" and function.owner is not None:
            yield from _constructing(function.owner, function.owner.descendants())

    def _mentioning(
        self, reached: Iterable[_Known], function: LinkedFunction | None = None, *, handed: bool = False
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
                yield from ((each, name) for each in self._within(home) if name in each.facts.called)
                continue
            key = name, home if function is not None else None
            if key not in told:
                told.add(key)
                readers = self.calling(name)
                self.effort += len(readers)
                for reader in self._from_near(function, readers):
                    if handed and not reader.facts.use(name) & HANDED:
                        continue
                    if function is None or self._may_mean(function, name, home, reader):
                        yield reader, name

    def _from_near(
        self, function: LinkedFunction | None, readers: Sequence[LinkedFunction]
    ) -> Sequence[LinkedFunction]:
        """Sort who may call a function, where few are asked about: who is near has most often an answer."""
        if function is None or not self._asks_few:
            return readers
        here = function.module
        modules = {reader.module for reader in readers}
        near = {module: common_folders(module.relative, here.relative) for module in modules}
        near[here] = len(here.relative)
        return sorted(readers, key=lambda reader: -near[reader.module])

    def _may_mean(self, function: LinkedFunction, name: str, home: _Home, reader: LinkedFunction) -> bool:
        """Tell whether who uses a name may mean a function by it, or what has it at home, as it is used."""
        how = reader.facts.use(name)
        if how & (OF_OTHER | HANDED) or (how & OF_OWN and not reader.takes_object):
            return True
        if isinstance(home, LinkedClass):
            own = bool(how & OF_OWN) and _are_related(home, reader.owner)
            return own or (bool(how & BARE) and reader.module is home.module)
        meant = self._settled_in(reader.module).get(name) if how == BARE else None
        if isinstance(meant, LinkedClass):
            return function.owner is not None and _are_related(function.owner, meant)
        return meant is None or meant.module is function.module

    def _reached(self, start: Iterable[_Known]) -> Iterator[_Known]:
        """Give names and the further names of what they denote, as far as the resolver follows them."""
        waiting: list[list[_Known]] = [[] for _ in range(DEEPEST + 1)]
        waiting[0].extend(start)
        found: set[_Known] = set()
        for depth, level in enumerate(waiting):
            while level:
                here = level.pop()
                if here in found:
                    continue
                found.add(here)
                yield here
                for known, steps in self._further_of(here).items():
                    if known not in found and depth + steps <= DEEPEST:
                        waiting[depth + steps].append(known)

    def _further_of(self, known: _Known) -> dict[_Known, int]:
        """Give the names that code gives to what has a name, each with the least steps to get from it."""
        if known not in self._further:
            further: dict[_Known, int] = {}
            for each, steps in self._further_names(*known):
                further[each] = min(steps, further.get(each, steps))
            self._further[known] = further
        return self._further[known]

    def _further_names(self, name: str, called: bool, home: _Home) -> Iterator[tuple[_Known, int]]:  # noqa: FBT001  # parts of one key
        """Give the names that code gives to what has a name already, and how many steps lead from each."""
        if isinstance(home, LinkedFunction):
            within = self._within(home)
            aliases = [(a, inner) for inner in within for a in aliases_in(inner) if a.name == name]
        else:
            aliases = self._tables.aliases(name, called=called)
            yield from (((local, called, None), 0) for local in self.imported_as(name))
        for alias, reader in aliases:
            if (called or not alias.called) and self._means(alias, reader, home):
                passed_on = called and not alias.called
                yield _bound(alias, reader, called=called), 0 if passed_on else _STEPS[alias.returned]

    def _within(self, function: LinkedFunction) -> tuple[LinkedFunction, ...]:
        if function not in self._inside:
            self._inside[function] = tuple(_within(function))
        return self._inside[function]

    def _means(self, alias: m.Alias, reader: LinkedFunction, home: _Home) -> bool:
        """Tell whether what a function gives a further name can be what has a name at home."""
        if isinstance(home, LinkedFunction):
            return not alias.of
        if home is _LIBRARY and (alias.of or alias.name in _BUILT_IN):
            kept = alias.of == UNNAMED and alias.kind != "local" and not alias.returned
            return not alias.of or alias.of in reader.module.imports or kept
        if alias.of:
            if not isinstance(home, LinkedClass):
                return True
            own = alias.of == _object_of(reader)
            class_ = reader.owner if own else self._class_named(alias.of, reader)
            return _are_related(home, class_) or (class_ is None and not own)
        if alias.name == _object_of(reader):
            return True
        module = reader.module
        if isinstance(home, LinkedClass):  # only the body of its class has a method without its object
            return module is home.module and reader.index == home.facts.parent
        return alias.name not in self._own_names(reader) and (
            bool(module.stars) or alias.name in module.imports or alias.name in self._defined_in(module)
        )

    def _defined_in(self, module: Module) -> set[str]:
        if module not in self._defined:
            aliases = (alias for function in module.functions for alias in function.facts.aliases)
            known = {alias.known_as for alias in aliases if alias.kind == "name"}
            known |= {function.facts.name for function in module.functions}
            self._defined[module] = known | {class_.facts.name for class_ in module.classes}
        return self._defined[module]

    def _class_named(self, name: str, reader: LinkedFunction) -> LinkedClass | None:
        """Give the class of its file that a function means by a name; None where it may be anything else."""
        outside = (
            reader.facts.parent <= 0 and name not in reader.nested and name not in self._own_names(reader)
        )
        meant = self._settled_in(reader.module).get(name) if outside else None
        return meant if isinstance(meant, LinkedClass) else None

    def _settled_in(self, module: Module) -> dict[str, LinkedFunction | LinkedClass]:
        """Give the functions and classes of a file whose names it binds to nothing else."""
        if module not in self._settled:
            functions, classes = module.top_functions, module.top_classes
            others = {
                *bound_names(module.code.facts.body),
                *module.rebound,
                *(functions.keys() & classes.keys()),
            }
            found: dict[str, LinkedFunction | LinkedClass] = {**functions, **classes}
            self._settled[module] = {name: meant for name, meant in found.items() if name not in others}
        return self._settled[module]

    def _own_names(self, function: LinkedFunction) -> frozenset[str]:
        """Give those parameters and variables of a function that it gives further names, or whose attributes.

        The variables of a module are none: they are for all.
        """
        if function not in self._own:
            facts = function.facts
            own = set(bound_names(facts.body)).difference(facts.outer_names) if function.index else set()
            own.update(parameter.name for parameter in facts.parameters)
            told = {name for alias in facts.aliases for name in (alias.name, alias.of)}
            self._own[function] = frozenset(own & told)
        return self._own[function]


def _in_order(functions: Iterable[LinkedFunction]) -> dict[LinkedFunction, None]:
    return dict.fromkeys(sorted(dict.fromkeys(functions), key=lambda function: function.order))


def _bound(alias: m.Alias, function: LinkedFunction, *, called: bool) -> _Known:
    returned = alias.returned or (called and not alias.called)
    home: _Home = None
    if alias.known_as.startswith(LAMBDA):
        home = function.enclosing
    elif alias.returned:
        home = _home_of(function)
    elif alias.kind == "local":
        home = function
    elif alias.kind == "own":
        home = function.owner
    return alias.known_as, returned, home


def _home_of(function: LinkedFunction) -> _Home:
    """Tell whose the name of a function is: of a class, or of the function that it stands in."""
    if function.owner is not None or function.facts.parent <= 0:
        return function.owner
    return function.enclosing


def _object_of(function: LinkedFunction) -> str:
    """Name the parameter by which a method has its object."""
    parameters = function.facts.parameters
    return parameters[0].name if function.owner is not None and parameters else ""


def _are_related(one: LinkedClass, other: LinkedClass | None) -> bool:
    return other is not None and (one in other.ancestors() or other in one.ancestors())


def _within(function: LinkedFunction) -> Iterator[LinkedFunction]:
    """Give a function and those defined in it, lambdas and methods too, in the order of the code."""
    yield function
    for inner in function.module.inner[function.index]:
        yield from _within(inner)


def _constructing(class_: LinkedClass, heirs: Iterable[LinkedClass]) -> Iterator[LinkedFunction]:
    """Give the code of a class and its relatives that calls its constructor by no name of the class."""
    for heir in heirs:
        inside = (function for method in heir.methods.values() for function in _within(method))
        yield from (function for function in inside if "__init__" in function.facts.mentions)
    for relative in dict.fromkeys((*class_.ancestors(), *heirs)):
        for method in relative.methods.values():
            if method.facts.decorators and method.facts.parameters:
                first = method.facts.parameters[0].name
                yield from (f for f in _within(method) if first in f.facts.mentions)
