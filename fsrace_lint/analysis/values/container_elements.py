"""Symbols of the items of collections, from their displays or from annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from fsrace_lint.analysis.values.abstract_values import (
    Annotated,
    Argument,
    Expression,
    IterationElement,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.assignment import targets_of
from fsrace_lint.engine.query import recursive_query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.symbols import ClassObject, ExternalName, Instance, is_property
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.annotations import EACH, VALUE, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.analysis.values.type_hints import TypeHints
    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.engine.depth_budget import DepthBudget
    from fsrace_lint.program.symbols import Symbol

_MOST_ITEMS: Final = 20
"""The number of items that are analyzed in a longer display."""
_SAME_PARTS: Final = frozenset({"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"})

Path: TypeAlias = "tuple[int | str, ...]"
"""The steps to an item: each is an index, `EACH`, or `VALUE`. Empty for the whole collection."""


class ElementResolver(Protocol):
    """The part of the resolver that `Elements` uses."""

    interpretation: Interpretation
    dependencies: Dependencies | None

    def symbol(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Symbol | None:
        """Return the symbol that an expression denotes."""

    def of_binding(self, binding: Binding, depth: int = 0, /) -> Symbol | None:
        """Return the symbol that a binding denotes."""

    def binding(self, name: str, scope: Environment) -> Binding | None:
        """Return the binding of a variable."""

    def class_of(self, entity: Symbol | None) -> LinkedClass | None:
        """Return the class of the project that a symbol is an instance of."""

    def attribute_values(self, class_: LinkedClass, name: str) -> list[Binding]:
        """Return the bindings of an attribute in a class and its relatives."""

    def library_item(self, name: str, call: m.Call, scope: Environment, index: int | str) -> Instance | None:
        """Return an item of the result of a library function, or None."""


class Elements:
    """Finds the symbols of items in the values of expressions."""

    def __init__(self, names: ElementResolver, declared: TypeHints, budget: DepthBudget) -> None:
        """Initialize with the resolver of expressions and the reader of annotations."""
        self._names = names
        self._objects = declared
        self.budget = budget
        self.dependencies = names.dependencies

    @recursive_query(beyond=None)
    def bound(self, binding: Binding | None, path: Path, depth: int) -> Symbol | None:
        """Return the symbol of an item of a bound value."""
        match binding:
            case Annotated(expr=expr, scope=scope, annotation=declared):
                found = self.part(expr, scope, path, depth)
                return found or self._declared(declared, scope.function, path, depth)
            case Expression(expr=expr, scope=scope):
                return self.part(expr, scope, path, depth)
            case IterationElement(source=Expression(expr=expr, scope=scope), index=index):
                inner = () if index is None else (index,)
                return self.part(expr, scope, (EACH, *inner, *path), depth)
            case UnpackedPart(source=Expression(expr=expr, scope=scope), index=int(index)):
                return self.part(expr, scope, (index, *path), depth)
            case Argument(function=function, parameter=parameter):
                annotation = None if parameter.kind in {"args", "kwargs"} else parameter.annotation
                return self._declared(annotation, function, path, depth)
            case Union(options=options):
                return common(self.bound(option, path, depth + 1) for option in options)
            case _:
                return None

    def part(self, expr: m.Expr, scope: Environment, path: Path, depth: int) -> Symbol | None:
        """Return the symbol of an item in the value of an expression.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.
            path: The steps to the item.
            depth: The number of steps so far. Beyond a limit, the result is None.

        Returns:
            The symbol, or None if unknown. If multiple instances are possible, an instance of their nearest
            common class.
        """
        if self.budget.exhausted(depth):
            return None
        if not path:
            return self._names.symbol(expr, scope, depth)
        match expr:
            case m.Name(id=name):
                return self.bound(self._names.binding(name, scope), path, depth + 1)
            case m.Sequence(items=items):
                chosen = _chosen(items, path[0])
                return common(self.part(item, scope, path[1:], depth + 1) for item in chosen)
            case m.Comprehension(results=results, generators=[generator]):
                result = results[0] if path[0] == EACH else results[-1]
                element = IterationElement(Expression(generator.iterable, scope))
                inside = scope.bind(targets_of(generator.target, element))
                return self.part(result, inside, path[1:], depth + 1)
            case m.Subscript(value=value, index=index):
                return self.part(value, scope, (step_to(index), *path), depth + 1)
            case m.Boolean(operator="or", values=options):
                return common(self.part(option, scope, path, depth + 1) for option in options)
            case m.Conditional(body=body, orelse=orelse):
                return common(self.part(option, scope, path, depth + 1) for option in (body, orelse))
            case m.Attribute(value=value, name=name):
                return self._of_attribute(self._names.symbol(value, scope, depth + 1), name, path, depth + 1)
            case m.Call():
                return self._of_call(expr, scope, path, depth + 1)
            case _:
                return None

    def _of_attribute(self, owner: Symbol | None, name: str, path: Path, depth: int) -> Symbol | None:
        class_ = self._names.class_of(owner)
        if class_ is None:
            return None
        method = class_.method(name)
        if method is not None:
            return self._of_result(method, path, depth) if is_property(method) else None
        return self.of_attribute(class_, name, path, depth)

    @recursive_query(beyond=None, once=True)
    def of_attribute(self, class_: LinkedClass, name: str, path: Path, depth: int) -> Symbol | None:
        """Return the symbol of an attribute of the instances of a class, or of an item in it."""
        values = self._names.attribute_values(class_, name)
        if path:
            found: Symbol | None = common(self.bound(value, path, depth) for value in values)
            return found or self._annotated(class_, name, path, depth)
        each = (self._names.of_binding(value, depth + 1) for value in values)
        found = next((symbol for symbol in each if symbol is not None), None)
        return found or self._annotated(class_, name, (), depth + 1)

    def _annotated(self, class_: LinkedClass, name: str, path: Path, depth: int) -> Symbol | None:
        """Return the symbol of an attribute, or of an item in it, from the annotations of its class."""
        for relative in class_.ancestors():
            for annotated, annotation in relative.facts.annotated:
                if annotated == name:
                    return self._declared(annotation, relative.module.code, path, depth)
        return None

    def _of_call(self, call: m.Call, scope: Environment, path: Path, depth: int) -> Symbol | None:
        first = call.arguments[0] if call.arguments else None
        match call.function:
            case m.Attribute(value=value, name="values") if first is None:
                return self.part(value, scope, (VALUE, *path[1:]), depth)
            case m.Attribute(value=value, name="items") if first is None and path[1:2] == (1,):
                return self.part(value, scope, (VALUE, *path[2:]), depth)
            case m.Name(id="enumerate") if first is not None and path[1:2] == (1,):
                return self.part(first, scope, (EACH, *path[2:]), depth)
            case m.Name(id="zip") if isinstance(index := (*path, EACH, EACH)[1], int):
                several = call.arguments[index : index + 1]
                return common(self.part(one, scope, (EACH, *path[2:]), depth) for one in several)
            case m.Name(id=name) if name in _SAME_PARTS and first is not None:
                return self.part(first, scope, path, depth)
            case _:
                called = self._names.symbol(call.function, scope, depth)
                if isinstance(called, ExternalName) and len(path) == 1:
                    return self._names.library_item(called.name, call, scope, path[0])
                return self._of_result(called, path, depth) if isinstance(called, LinkedFunction) else None

    @recursive_query(beyond=None)
    def _of_result(self, function: LinkedFunction, path: Path, depth: int) -> Symbol | None:
        """Return the symbol of an item in the result of a function."""
        declared = self._declared(function.facts.returns, function, path, depth)
        if declared is not None or function.facts.is_generator:
            return declared
        ways = self._names.interpretation.return_values(function)
        return common(self.part(value.expr, value.scope, path, depth + 1) for value in ways)

    def result(self, function: LinkedFunction, last: Symbol | None, depth: int) -> Symbol | None:
        """Return the symbol of the result of a function: what all returned instances have in common.

        Args:
            function: The function.
            last: The symbol of the value that is returned outside all branches, or None if unknown.
            depth: The number of steps so far. Beyond a limit, nothing else is analyzed.

        Returns:
            The symbol. Values that are not known to be instances, such as `None`, are ignored.
        """
        declared = None if last is not None else self._declared(function.facts.returns, function, (), depth)
        ways = (
            ()
            if declared is not None or self.budget.exhausted(depth)
            else self._names.interpretation.return_values(function)
        )
        if last is not None and len(ways) == 1:
            return last
        found = (self._names.symbol(value.expr, value.scope, depth + 1) for value in ways)
        return declared or common((*(entity for entity in found if isinstance(entity, Instance)), last))

    def _declared(
        self, annotation: m.Expr | None, function: LinkedFunction, path: Path, depth: int
    ) -> Symbol | None:
        """Return the instance of the class that an annotation names, or that of an item."""
        if annotation is None:
            return None
        if not path:
            return self._objects.object_of(annotation, function, depth)
        inner = parts_of(annotation, path[0])
        return common(self._declared(each, function, path[1:], depth) for each in inner)


def step_to(index: m.Expr) -> int | str:
    """Return the step to the item of a collection at an index."""
    place = index.value if isinstance(index, m.Constant) else None
    return place if type(place) is int and place >= 0 else VALUE


def _chosen(items: tuple[m.Expr, ...], step: int | str) -> tuple[m.Expr, ...]:
    if isinstance(step, str) or any(isinstance(item, m.Starred) for item in items):
        return items[:_MOST_ITEMS]
    return items[step : step + 1]


def common(entities: Iterable[Symbol | None]) -> Instance | ClassObject | None:
    """Return what some symbols have in common: the same object, or classes with a common ancestor.

    Args:
        entities: The symbols. Only instances and classes count. A function in a collection could be called
            under names that the search for its callers does not cover.

    Returns:
        The only symbol; or an instance of the nearest common class, or that class; or else the first
        symbol.
    """
    parts = (ClassObject(entity) if isinstance(entity, LinkedClass) else entity for entity in entities)
    known = [part for part in dict.fromkeys(parts) if isinstance(part, (Instance, ClassObject))]
    classes = list(_classes(known))
    if len(known) > 1 and len(classes) == len(known):
        for ancestor in classes[0].ancestors():
            if all(ancestor in class_.ancestors() for class_ in classes):
                return type(known[0])(ancestor)
    return known[0] if known else None


def _classes(parts: Iterable[Instance | ClassObject]) -> Iterator[LinkedClass]:
    for each in parts:
        if isinstance(each.of, LinkedClass):
            yield each.of
