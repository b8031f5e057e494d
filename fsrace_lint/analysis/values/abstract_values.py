"""Bindings of names at one point of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.syntax import model as m

_LONGEST: Final = 24
"""The number of consecutive bindings after which they are joined into one environment.

The same number of joined environments are joined in turn.
"""
_SHALLOW: Final = 16
"""Up to this depth, lookups in parent environments are not cached, because they are fast."""
_MOST_NESTED: Final = 100
"""A name that this many consecutive branches may bind becomes unknown."""


class Expression(Record, frozen=True, eq=False):
    """An expression with the environment in which it is evaluated."""

    expr: m.Expr
    scope: Environment


class Annotated(Expression, frozen=True, eq=False):
    """An expression that is assigned to a name with an annotation."""

    annotation: m.Expr


class Narrowed(Expression, frozen=True, eq=False, kw_only=True):
    """What `isinstance()` tells about a variable: `expr` is the class, or a tuple of classes.

    It has a name of its own in an environment, and holds as long as the variable has the same binding.
    """

    bound: Binding | None
    holds: bool


class Argument(Record, frozen=True, eq=False):
    """The value that callers pass for a parameter."""

    function: LinkedFunction
    parameter: m.Parameter


class Derived(Record, frozen=True, eq=False):
    """A value that is derived from an expression."""

    source: Expression


class IterationElement(Derived, frozen=True, eq=False):
    """An element of an iterable, in a loop or by unpacking; or the item `index` of that element."""

    index: int | None = None


class UnpackedPart(Derived, frozen=True, eq=False):
    """One item of a value that is unpacked into multiple names; `index` is its position, if known."""

    index: int | None = None


class ContextResult(Derived, frozen=True, eq=False):
    """The value that `with source as name` binds, or the item `index` of it."""

    index: int | None = None


class Union(Record, frozen=True, eq=False):
    """One of multiple bindings."""

    options: tuple[Binding, ...]
    nested: int = 0
    """The depth of unions within this union."""


class ConditionalValue(Union, frozen=True, eq=False, kw_only=True):
    """The first of two bindings if the condition is true, and the second if it is false."""

    test: Expression


class Unknown(Record, frozen=True, eq=False):
    """A value that is not analyzed."""


class Looped(Unknown, frozen=True, eq=False, kw_only=True):
    """A value that a `while` loop may change; the one before it if the test is false at once."""

    before: Binding
    test: Expression


REBOUND: Final = Unknown()
"""The binding of a module variable by a function that declares it `global`, if unknown."""

Binding: TypeAlias = Expression | Argument | Derived | Union | Unknown


class Environment:
    """The immutable bindings of a function at one point.

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
        """Create an environment of `function` with `names` in addition to those of `parent`."""
        self.function = function
        self.parent = parent
        self._found: dict[str, Binding | None] | None = None
        self._level = level
        """How often this environment was joined. Levels increase from an environment to its parents."""
        same = parent is not None and parent._level == level
        self._run: int = parent._run + 1 if parent is not None and same else 0
        """The number of consecutive parents with the same level."""
        self.names: dict[str, Binding] | None = names
        if len(names) == 1:  # in most cases; a dictionary uses more memory than the rest of the object
            ((self._name, self._bound),) = names.items()
            self.names = None

    def get(self, name: str) -> Binding | None:
        """Return the binding of a local name, or None if this function has not bound it."""
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
        """Return the environment after `names` are bound."""
        if not names:
            return self
        made = Environment(self.function, names, self)
        while made._run >= _LONGEST:
            made = made._joined()
        return made

    def _joined(self) -> Environment:
        """Return these environments of one level as one of the next level, so that lookups stay fast."""
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
        """Return the environment in which `names` are unknown."""
        return self.bind({name: Unknown() for name in names})


def _lives_outside(name: str, scope: Environment) -> bool:
    """Return whether code outside this function can have bound a name."""
    return "." in name or name in scope.function.facts.outer_names


def merge(
    first: Environment, second: Environment, names: Iterable[str], test: Expression | None = None
) -> Environment:
    """Join the environments of two branches.

    Args:
        first: The environment after one branch, in which `test` is true.
        second: The environment after the other branch.
        names: The names that either branch may have bound.
        test: The condition, if a condition chooses the branch.

    Returns:
        The environment after both.
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
        elif (one is None or two is None) and not _lives_outside(name, first):
            joined[name] = Union(tuple(option for option in (one, two) if option is not None), nested)
        elif one is None or two is None:
            chosen = (one or Unknown(), two or Unknown())
            joined[name] = (
                Union(chosen, nested) if test is None else ConditionalValue(chosen, nested, test=test)
            )
        elif test is not None:
            joined[name] = ConditionalValue((one, two), nested, test=test)
        else:
            joined[name] = Union((one, two), nested)
    return second.bind(joined)


def _nested(binding: Binding | None) -> int:
    return binding.nested if isinstance(binding, Union) else 0
