"""The elements that a function puts into its collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import Expression, IterationElement
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.traversal import suites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.analysis.values.resolve import Resolver

_DEEPEST: Final = 8
"""The maximum number of steps from an element to where it is added."""
_PUTTING: Final = frozenset({"append", "appendleft", "add", "insert"})
_SAME_ELEMENTS: Final = frozenset({"list", "tuple", "set", "sorted", "reversed"})
_KEYS: Final = frozenset({"keys", "items"})


class CollectionContents:
    """Finds the elements of collections that are filled in the code that uses them."""

    def __init__(self, resolver: Resolver) -> None:
        """Initialize with the resolver of names."""
        self._resolver = resolver

    def elements_for(self, binding: Binding) -> Iterator[m.Expr]:
        """Yield the expressions that a name can be bound to, if it is bound to an element of a collection.

        Args:
            binding: The element in a loop (for a dictionary, its key) or an item by its index. Nothing is
                yielded for any other binding.
        """
        match binding:
            case IterationElement(source=Expression(expr=expr, scope=scope), index=None | 0):
                yield from self._elements(expr, scope, 0)
            case Expression(expr=m.Subscript(value=value, index=m.Constant(value=int())), scope=scope):
                yield from self._elements(value, scope, 0)

    def _elements(self, expr: m.Expr, scope: Environment, depth: int) -> Iterator[m.Expr]:
        if depth > _DEEPEST:
            return
        match expr:
            case m.Name(id=name):
                bound = self._resolver.binding(name, scope)
                if isinstance(bound, Expression):
                    yield from self._elements(bound.expr, bound.scope, depth + 1)
                    yield from _put_into(name, scope.function.facts.body)
            case m.Sequence(items=items):
                yield from items
            case m.Comprehension(results=[result], generators=[generator]):
                if _first(generator.target) == _end(result):
                    yield from self._elements(generator.iterable, scope, depth + 1)
                else:
                    yield result
            case m.Subscript(value=value, index=m.Opaque()):
                yield from self._elements(value, scope, depth + 1)
            case m.Call(function=m.Name(id=name), arguments=[filled]) if name in _SAME_ELEMENTS:
                yield from self._elements(filled, scope, depth + 1)
            case m.Call(function=m.Attribute(value=filled, name=name)) if name in _KEYS:
                yield from self._elements(filled, scope, depth + 1)


def _put_into(name: str, body: Iterable[m.Statement]) -> Iterator[m.Expr]:
    """Yield the elements that statements add to a collection; for a dictionary, the keys."""
    for statement in body:
        match statement:
            case m.Assign(targets=[m.Subscript(value=m.Name(id=filled), index=key)]) if filled == name:
                yield key
            case m.Evaluate(value=m.Call(function=m.Attribute(value=m.Name(id=filled), name=put)) as call):
                if filled == name and put in _PUTTING:
                    yield from call.arguments[-1:]
        for suite in suites(statement):
            yield from _put_into(name, suite)


def _first(target: m.Expr) -> m.Expr:
    return target.items[0] if isinstance(target, m.Sequence) and target.items else target


def _end(path: m.Expr) -> m.Expr:
    """Return the last part of a path expression."""
    match path:
        case m.Call(arguments=[*_, last]) | m.Binary(right=last) | m.Format(parts=[*_, last]):
            return last
        case _:
            return path
