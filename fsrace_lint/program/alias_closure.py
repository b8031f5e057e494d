"""The aliases of a name: other names that code assigns it to, returns it under, or imports it as."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.name_lookup import aliases_in
from fsrace_lint.program.symbols import DEEPEST
from fsrace_lint.syntax.model import LAMBDA, UNNAMED
from fsrace_lint.syntax.traversal import bound_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.program.module_table import ModuleTable
    from fsrace_lint.program.modules import Module
    from fsrace_lint.program.name_lookup import NameLookup
    from fsrace_lint.syntax import model as m

Owner: TypeAlias = "LinkedFunction | LinkedClass | str | None"
LIBRARY: Final = "library"
_ANY_OBJECT: Final = "any object"
"""The owner of a name that is used as an attribute of an object of an unknown class."""
_BUILT_IN: Final = frozenset(vars(builtins))

_STEPS: Final = {False: 2, True: 3}
"""The minimum number of resolver steps from an alias to what it denotes, and from a call that returns it.

An alias of a called function costs nothing, because it is resolved separately.
"""

MOST: Final = 5_000
"""The maximum number of aliases at one step; a larger number carries no information."""

KnownName: TypeAlias = "tuple[str, bool, Owner]"
"""A name, whether a call of it returns what is searched for, and the owner of the name.

The owner is the function of a variable, the class of an attribute, a library, or None if it is unknown.
"""

_NONE: Final[dict[KnownName, int]] = {}
"""The aliases of names without aliases, as one shared object."""

_GivenAlias: TypeAlias = "tuple[m.Alias, LinkedFunction]"
"""An alias, and the function that creates it."""


class _ByClass(NamedTuple):
    """The aliases of an attribute name: of unknown objects, of objects of known classes, of bare names."""

    of_any: list[_GivenAlias]
    of_classes: dict[LinkedClass, list[_GivenAlias]]
    bare: dict[LinkedFunction, list[_GivenAlias]]

    def of(self, home: LinkedClass) -> Iterator[_GivenAlias]:
        """Yield the aliases that may refer to an attribute of a class: of related classes, or in its body."""
        for class_, given in self.of_classes.items():
            if are_related(home, class_):
                yield from given
        # only the body of its class can use a method as a bare name
        yield from self.bare.get(home.module.functions[home.facts.parent], ())


class AliasClosure:
    """The aliases of functions, classes, and library names, each computed once."""

    def __init__(self, table: ModuleTable, tables: NameLookup) -> None:
        """Initialize with the files of a project and a name lookup, without reading anything."""
        self._table, self._tables = table, tables

    def all_reached(self, start: Iterable[KnownName]) -> Iterator[KnownName]:
        """Return names and all their aliases, up to the number of steps that the resolver follows."""
        return (known for _, known in self._by_steps(start))

    def reached(self, start: Iterable[KnownName]) -> Iterator[KnownName]:
        """Yield names and their aliases, up to the step at which more than `MOST` are added.

        That happens in trees of many projects: a value that one project's `get` returns could come from any
        `get`, and hardly any name can be ruled out.
        """
        latest: list[KnownName] = []
        at = 0
        for steps, known in self._by_steps(start):
            if steps == 0:
                yield known
                continue
            if steps != at:
                yield from latest
                latest, at = [], steps
            latest.append(known)
            if len(latest) > MOST:
                return
        yield from latest

    def _by_steps(self, start: Iterable[KnownName]) -> Iterator[tuple[int, KnownName]]:
        """Yield names and aliases with the minimum number of steps to each, fewest steps first."""
        waiting: list[list[KnownName]] = [[] for _ in range(DEEPEST + 1)]
        waiting[0].extend(start)
        found: set[KnownName] = set()
        for depth, level in enumerate(waiting):
            while level:
                here = level.pop()
                if here in found:
                    continue
                found.add(here)
                if here[2] is not _ANY_OBJECT:
                    yield depth, here
                for known, steps in self.of(here).items():
                    if known not in found and depth + steps <= DEEPEST:
                        waiting[depth + steps].append(known)

    @query
    def of(self, known: KnownName) -> dict[KnownName, int]:
        """Return the aliases of a name, with the minimum number of steps to each."""
        further: dict[KnownName, int] = {}
        for each, steps in self._further_names(*known):
            further[each] = min(steps, further.get(each, steps))
        return further or _NONE

    def _further_names(self, name: str, called: bool, home: Owner) -> Iterator[tuple[KnownName, int]]:  # noqa: FBT001  # parts of one key
        """Yield the aliases of a name, with the number of steps to each."""
        if home is not _ANY_OBJECT and not isinstance(home, LinkedFunction):
            yield from (((local, called, None), 0) for local in self._table.renamed.get(name, ()))
        if isinstance(home, LinkedClass):
            yield (name, called, _ANY_OBJECT), 0
        for alias, reader in self._aliases_of(name, called, home):
            if called or not alias.called:
                passed_on = called and not alias.called
                yield bound(alias, reader, called=called), 0 if passed_on else _STEPS[alias.returned]

    def _aliases_of(self, name: str, called: bool, home: Owner) -> Iterable[_GivenAlias]:  # noqa: FBT001  # parts of one key
        """Return the aliases of a name of an owner, or of the results of its calls."""
        if isinstance(home, LinkedFunction):
            return self._by_name(home).get(name, ())
        if isinstance(home, LinkedClass) or home is _ANY_OBJECT:
            by_class = self._by_class(name, called)
            if isinstance(home, LinkedClass):
                return by_class.of(home)
            return by_class.of_any
        given = self._tables.aliases(name, called)
        return ((alias, reader) for alias, reader in given if self._means(alias, reader, home))

    @query
    def _by_name(self, home: LinkedFunction) -> dict[str, list[_GivenAlias]]:
        """Return the aliases that a function and the functions inside it create, by aliased variable."""
        found: dict[str, list[_GivenAlias]] = {}
        for reader in self.inside(home):
            for alias in aliases_in(reader):
                if not alias.of:
                    found.setdefault(alias.name, []).append((alias, reader))
        return found

    @query
    def _by_class(self, name: str, called: bool) -> _ByClass:  # noqa: FBT001  # parts of one key
        found = _ByClass([], {}, {})
        for each in self._tables.aliases(name, called):
            alias, reader = each
            if alias.of:
                own = alias.of == _object_of(reader)
                class_ = reader.owner if own else self._class_named(alias.of, reader)
                if class_ is None:
                    found.of_any.append(each)
                else:
                    found.of_classes.setdefault(class_, []).append(each)
            elif alias.name == _object_of(reader):
                found.of_any.append(each)
            else:
                found.bare.setdefault(reader, []).append(each)
        return found

    @query
    def inside(self, function: LinkedFunction) -> tuple[LinkedFunction, ...]:
        """Return a function and the functions defined inside it, lambdas and methods too, in source order."""
        return tuple(within(function))

    def _means(self, alias: m.Alias, reader: LinkedFunction, home: Owner) -> bool:
        """Return whether an alias may refer to a name of a library, or of an unknown owner."""
        if home is LIBRARY and (alias.of or alias.name in _BUILT_IN):
            kept = alias.of == UNNAMED and alias.kind != "local" and not alias.returned
            return not alias.of or alias.of in reader.module.imports or kept
        if alias.of or alias.name == _object_of(reader):
            return True
        module = reader.module
        return alias.name not in self._own_names(reader) and (
            bool(module.stars) or alias.name in module.imports or alias.name in self._defined_in(module)
        )

    @query
    def _defined_in(self, module: Module) -> set[str]:
        aliases = (alias for function in module.functions for alias in function.facts.aliases)
        known = {alias.known_as for alias in aliases if alias.kind == "name"}
        known |= {function.facts.name for function in module.functions}
        return known | {class_.facts.name for class_ in module.classes}

    def _class_named(self, name: str, reader: LinkedFunction) -> LinkedClass | None:
        """Return the class that a name means in a function, or None if it may mean something else."""
        outside = (
            reader.facts.parent <= 0 and name not in reader.nested and name not in self._own_names(reader)
        )
        meant = self.settled_in(reader.module).get(name) if outside else None
        return meant if isinstance(meant, LinkedClass) else None

    @query
    def settled_in(self, module: Module) -> dict[str, LinkedFunction | LinkedClass]:
        """Return the functions and classes of a file whose names are bound to nothing else there."""
        functions, classes = module.top_functions, module.top_classes
        others = {
            *bound_in(module.code.facts),
            *module.rebound,
            *(functions.keys() & classes.keys()),
        }
        found: dict[str, LinkedFunction | LinkedClass] = {**functions, **classes}
        return {name: meant for name, meant in found.items() if name not in others}

    @query
    def _own_names(self, function: LinkedFunction) -> frozenset[str]:
        """Return the parameters and local variables of a function that have aliases, or whose attributes do.

        Variables of a module are not included, because all functions share them.
        """
        facts = function.facts
        own = set(bound_in(facts)).difference(facts.outer_names) if function.index else set()
        own.update(parameter.name for parameter in facts.parameters)
        told = {name for alias in facts.aliases for name in (alias.name, alias.of)}
        return frozenset(own & told)


def bound(alias: m.Alias, function: LinkedFunction, *, called: bool) -> KnownName:
    """Return the name that an alias creates.

    Args:
        alias: The alias.
        function: The function that creates it.
        called: Whether the alias is of the results of calls of the name.

    Returns:
        The name and its owner.
    """
    returned = alias.returned or (called and not alias.called)
    home: Owner = None
    if alias.known_as.startswith(LAMBDA):
        home = function.enclosing
    elif alias.returned:
        home = owner_of(function)
    elif alias.kind == "local":
        home = function
    elif alias.kind == "own":
        home = function.owner
    return alias.known_as, returned, home


def owner_of(function: LinkedFunction) -> Owner:
    """Return the owner of the name of a function: its class, or its enclosing function."""
    if function.owner is not None or function.facts.parent <= 0:
        return function.owner
    return function.enclosing


def _object_of(function: LinkedFunction) -> str:
    """Return the name of the first parameter of a method, such as `self`; empty for other functions."""
    parameters = function.facts.parameters
    return parameters[0].name if function.owner is not None and parameters else ""


def are_related(one: LinkedClass, other: LinkedClass | None) -> bool:
    """Return whether two classes are the same, or one derives from the other."""
    return other is not None and (one in other.ancestors() or other in one.ancestors())


def within(function: LinkedFunction) -> Iterator[LinkedFunction]:
    """Yield a function and the functions defined inside it, with lambdas and methods, in source order."""
    yield function
    for inner in function.module.inner[function.index]:
        yield from within(inner)
