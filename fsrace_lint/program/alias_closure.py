"""By which names what has a name is known too: code binds it to others, returns it, imports it under them."""

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
"""Who has a name, where code uses it as an attribute of what may be an object of any class."""
_BUILT_IN: Final = frozenset(vars(builtins))

_STEPS: Final = {False: 2, True: 3}
"""How many steps the resolver takes at least from a further name to what it stands for, and from a call of
what returns that. A name of what is called costs nothing: it is resolved by itself."""

MOST: Final = 5_000
"""More further names than this, all at so many steps, tell nothing."""

KnownName: TypeAlias = "tuple[str, bool, Owner]"
"""A name, whether a call of it gives what is looked for, and whose name it is: a variable of a
function, an attribute of the objects of a class, of a library; None where anybody may have it."""

_NONE: Final[dict[KnownName, int]] = {}
"""The further names of most names: one object."""

_GivenAlias: TypeAlias = "tuple[m.Alias, LinkedFunction]"
"""A further name, and the function that gives it."""


class _ByClass(NamedTuple):
    """What gives further names to attributes of a name: of any object, of objects of a class, of none."""

    of_any: list[_GivenAlias]
    of_classes: dict[LinkedClass, list[_GivenAlias]]
    bare: dict[LinkedFunction, list[_GivenAlias]]

    def of(self, home: LinkedClass) -> Iterator[_GivenAlias]:
        """Give what surely names an attribute of a class, or may: a relative's, or a name in its body."""
        for class_, given in self.of_classes.items():
            if are_related(home, class_):
                yield from given
        # only the body of its class has a method without its object
        yield from self.bare.get(home.module.functions[home.facts.parent], ())


class AliasClosure:
    """Finds the further names of what functions, classes and libraries have, each name's once."""

    def __init__(self, table: ModuleTable, tables: NameLookup) -> None:
        """Prepare for a project: its files, and where its names stand; nothing is looked at yet."""
        self._table, self._tables = table, tables

    def all_reached(self, start: Iterable[KnownName]) -> Iterator[KnownName]:
        """Give names and the further names of what they denote, as far as the resolver follows them."""
        return (known for _, known in self._by_steps(start))

    def reached(self, start: Iterable[KnownName]) -> Iterator[KnownName]:
        """Give the same up to the steps at which there are so many that they tell nothing any more.

        That is so in trees of many projects: what a `get` of one of them returns, any `get` of the others
        may give, and few names are left that could not be meant.
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
        """Give names and further names, each with the least steps that lead there, in that order."""
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
        """Give the names that code gives to what has a name, each with the least steps to get from it."""
        further: dict[KnownName, int] = {}
        for each, steps in self._further_names(*known):
            further[each] = min(steps, further.get(each, steps))
        return further or _NONE

    def _further_names(self, name: str, called: bool, home: Owner) -> Iterator[tuple[KnownName, int]]:  # noqa: FBT001  # parts of one key
        """Give the names that code gives to what has a name already, and how many steps lead from each."""
        if home is not _ANY_OBJECT and not isinstance(home, LinkedFunction):
            yield from (((local, called, None), 0) for local in self._table.renamed.get(name, ()))
        if isinstance(home, LinkedClass):
            yield (name, called, _ANY_OBJECT), 0
        for alias, reader in self._aliases_of(name, called, home):
            if called or not alias.called:
                passed_on = called and not alias.called
                yield bound(alias, reader, called=called), 0 if passed_on else _STEPS[alias.returned]

    def _aliases_of(self, name: str, called: bool, home: Owner) -> Iterable[_GivenAlias]:  # noqa: FBT001  # parts of one key
        """Give what gives a further name to what has a name at home, or to what calls of it give."""
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
        """Give what gives variables of a function, and those of functions in it, further names."""
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
        """Give a function and those defined in it, lambdas and methods too, in the order of the code."""
        return tuple(within(function))

    def _means(self, alias: m.Alias, reader: LinkedFunction, home: Owner) -> bool:
        """Tell whether what a function gives a further name can be what a library has, or anybody."""
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
        """Give the class of its file that a function means by a name; None where it may be anything else."""
        outside = (
            reader.facts.parent <= 0 and name not in reader.nested and name not in self._own_names(reader)
        )
        meant = self.settled_in(reader.module).get(name) if outside else None
        return meant if isinstance(meant, LinkedClass) else None

    @query
    def settled_in(self, module: Module) -> dict[str, LinkedFunction | LinkedClass]:
        """Give the functions and classes of a file whose names it binds to nothing else."""
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
        """Give those parameters and variables of a function that it gives further names, or whose attributes.

        The variables of a module are none: they are for all.
        """
        facts = function.facts
        own = set(bound_in(facts)).difference(facts.outer_names) if function.index else set()
        own.update(parameter.name for parameter in facts.parameters)
        told = {name for alias in facts.aliases for name in (alias.name, alias.of)}
        return frozenset(own & told)


def bound(alias: m.Alias, function: LinkedFunction, *, called: bool) -> KnownName:
    """Give the further name that an alias in a function gives.

    Args:
        alias: The alias.
        function: The function.
        called: Whether it is of what calls of its name give.

    Returns:
        The name, and whose it is.
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
    """Tell whose the name of a function is: of a class, or of the function that it stands in."""
    if function.owner is not None or function.facts.parent <= 0:
        return function.owner
    return function.enclosing


def _object_of(function: LinkedFunction) -> str:
    """Name the parameter by which a method has its object."""
    parameters = function.facts.parameters
    return parameters[0].name if function.owner is not None and parameters else ""


def are_related(one: LinkedClass, other: LinkedClass | None) -> bool:
    """Tell whether one of two classes derives from the other, or they are the same."""
    return other is not None and (one in other.ancestors() or other in one.ancestors())


def within(function: LinkedFunction) -> Iterator[LinkedFunction]:
    """Give a function and those defined in it, lambdas and methods too, in the order of the code."""
    yield function
    for inner in function.module.inner[function.index]:
        yield from within(inner)
