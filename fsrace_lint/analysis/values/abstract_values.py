"""What a name stands for at one point of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.syntax import model as m

_LONGEST: Final = 24
"""After so many bindings on top of each other they are joined; so are so many of what came of that."""
_SHALLOW: Final = 16
"""Up to here what was looked up in outer scopes is not kept: it is soon found again."""
_MOST_NESTED: Final = 100
"""A name that so many branches in a row may bind is followed no further."""


class Expression(Record, frozen=True, eq=False):
    """An expression, to be read with the names as they stood when it was evaluated."""

    expr: m.Expr
    scope: Environment


class Argument(Record, frozen=True, eq=False):
    """Whatever the callers pass for a parameter."""

    function: LinkedFunction
    parameter: m.Parameter


class Derived(Record, frozen=True, eq=False):
    """Something that comes out of a value."""

    source: Expression


class IterationElement(Derived, frozen=True, eq=False):
    """One element of an iterable, in a loop or unpacking; `index` tells which part of it."""

    index: int | None = None


class UnpackedPart(Derived, frozen=True, eq=False):
    """One part of a value that was unpacked into several names; `index` where it can be counted."""

    index: int | None = None


class ContextResult(Derived, frozen=True, eq=False):
    """What `with source as name` binds."""


class Union(Record, frozen=True, eq=False):
    """One of several bindings."""

    options: tuple[Binding, ...]
    nested: int = 0
    """How many of its kind lie in each other in it."""


class ConditionalValue(Union, frozen=True, eq=False, kw_only=True):
    """The first of two bindings where the test held, else the second."""

    test: Expression


class Unknown(Record, frozen=True, eq=False):
    """Something that was not followed."""


REBOUND: Final = Unknown()
"""What some function binds a variable of a module to."""

Binding: TypeAlias = Expression | Argument | Derived | Union | Unknown


class Environment:
    """The bindings of one function at one point; never changed once made.

    Dotted targets (`self.x = …`) are bound under their dotted name.
    """

    __slots__ = ("_bound", "_found", "_level", "_name", "_run", "function", "names", "parent")

    def __init__(
        self,
        function: LinkedFunction,
        names: dict[str, Binding],
        parent: Environment | None = None,
        level: int = 0,
    ) -> None:
        """Make a scope of `function` with `names` on top of those of `parent`."""
        self.function = function
        self.parent = parent
        self._found: dict[str, Binding | None] | None = None
        self._level = level
        """How often what is here was joined: the levels rise from a scope to its parents."""
        same = parent is not None and parent._level == level
        self._run: int = parent._run + 1 if parent is not None and same else 0
        """How many of its nearest parents have the same level."""
        self.names: dict[str, Binding] | None = names
        if len(names) == 1:  # as most; a dictionary takes more than all the rest
            ((self._name, self._bound),) = names.items()
            self.names = None

    def get(self, name: str) -> Binding | None:
        """Give the binding of a local name, or None where this function has not bound it."""
        names = self.names
        if names is None:
            if self._name == name:
                return self._bound
        elif name in names:
            return names[name]
        found = self._found
        if found is not None and name in found:
            return found[name]
        binding: Binding | None = None
        scope = self.parent
        while scope is not None:
            names = scope.names
            if names is None:
                if scope._name == name:
                    binding = scope._bound
                    break
            elif name in names:
                binding = names[name]
                break
            scope = scope.parent
        if found is not None:
            found[name] = binding
        elif self._run > _SHALLOW:
            self._found = {name: binding}
        return binding

    def bind(self, names: dict[str, Binding]) -> Environment:
        """Give the scope after `names` are bound."""
        if not names:
            return self
        made = Environment(self.function, names, self)
        while made._run >= _LONGEST:
            made = made._joined()
        return made

    def _joined(self) -> Environment:
        """Join the scopes of one level at the end into one of the next: so few are to be asked for a name."""
        chain: list[Environment] = []
        scope: Environment | None = self
        while scope is not None and scope._level == self._level:
            chain.append(scope)
            scope = scope.parent
        names: dict[str, Binding] = {}
        for link in reversed(chain):
            if link.names is not None:
                names.update(link.names)
            else:
                names[link._name] = link._bound
        return Environment(self.function, names, scope, self._level + 1)

    def forget(self, names: Iterable[str]) -> Environment:
        """Give the scope in which nothing is known of `names`."""
        return self.bind({name: Unknown() for name in names})


def _lives_outside(name: str, scope: Environment) -> bool:
    """Tell whether a name can have a value that this function did not bind."""
    return "." in name or name in scope.function.facts.outer_names


def merge(
    first: Environment, second: Environment, names: Iterable[str], test: Expression | None = None
) -> Environment:
    """Join two ways that meet.

    Args:
        first: The bindings of one way (the one on which `test` held).
        second: Those of the other.
        names: The names that either way may have bound.
        test: What decided between the ways, where that was a test.

    Returns:
        The bindings after both.
    """
    joined: dict[str, Binding] = {}
    for name in names:
        one, two = first.get(name), second.get(name)
        nested = 1 + max(_nested(one), _nested(two))
        if one is two:
            if one is not None:
                joined[name] = one
        elif nested > _MOST_NESTED:
            joined[name] = Unknown()
        elif one is None or two is None:
            bound = tuple(option for option in (one, two) if option is not None)
            joined[name] = Union((*bound, Unknown()) if _lives_outside(name, first) else bound, nested)
        elif test is not None:
            joined[name] = ConditionalValue((one, two), nested, test=test)
        else:
            joined[name] = Union((one, two), nested)
    return second.bind(joined)


def _nested(binding: Binding | None) -> int:
    return binding.nested if isinstance(binding, Union) else 0
