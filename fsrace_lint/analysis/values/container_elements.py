"""What the parts of collections denote: by how these are written, or by what annotations say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    Expression,
    IterationElement,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.assignment import targets_of
from fsrace_lint.engine.query import recursive_query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction
from fsrace_lint.program.symbols import ClassObject, Instance, is_property
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
"""Of a longer display only so many parts are looked at."""
_SAME_PARTS: Final = frozenset({"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"})

Path: TypeAlias = "tuple[int | str, ...]"
"""The way to a part: each step is a place, EACH or VALUE; the empty way leads to the whole."""


class ElementResolver(Protocol):
    """What the resolver knows of names."""

    interpretation: Interpretation
    dependencies: Dependencies | None

    def symbol(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Symbol | None:
        """Find what an expression denotes."""

    def of_binding(self, binding: Binding, depth: int = 0, /) -> Symbol | None:
        """Find what a bound name denotes."""

    def binding(self, name: str, scope: Environment) -> Binding | None:
        """Find the binding of a variable."""

    def class_of(self, entity: Symbol | None) -> LinkedClass | None:
        """Give the class of the project that an object belongs to."""

    def attribute_values(self, class_: LinkedClass, name: str) -> list[Binding]:
        """Give what a class and its relatives bind an attribute to."""


class Elements:
    """Finds what a part of an expression's value denotes."""

    def __init__(self, names: ElementResolver, declared: TypeHints, budget: DepthBudget) -> None:
        """Take what resolves the expressions that parts are written as, and what reads annotations."""
        self._names = names
        self._objects = declared
        self.budget = budget
        self.dependencies = names.dependencies

    def bound(self, binding: Binding | None, path: Path, depth: int) -> Symbol | None:
        """Find what a part of what a name is bound to denotes."""
        match binding:
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
        """Find what a part of the value of an expression denotes.

        Args:
            expr: The expression.
            scope: The names as they stand where it is evaluated.
            path: The way to the part.
            depth: How many steps were taken to get here; past a bound the answer is None.

        Returns:
            The entity, or None where it cannot be told; where it may be one of several objects,
            it is one of the nearest class that all have in common.
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
            case m.Comprehension(results=[result], generators=[generator]):
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
        """Find what an attribute of the objects of a class denotes, or a part of it."""
        values = self._names.attribute_values(class_, name)
        if path:
            found: Symbol | None = common(self.bound(value, path, depth) for value in values)
            return found or self._annotated(class_, name, path, depth)
        each = (self._names.of_binding(value, depth + 1) for value in values)
        found = next((symbol for symbol in each if symbol is not None), None)
        return found or self._annotated(class_, name, (), depth + 1)

    def _annotated(self, class_: LinkedClass, name: str, path: Path, depth: int) -> Symbol | None:
        """Find what an annotation in a class says of an attribute of its objects, or of a part of it."""
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
                return self._of_result(called, path, depth) if isinstance(called, LinkedFunction) else None

    def _of_result(self, function: LinkedFunction, path: Path, depth: int) -> Symbol | None:
        """Find what a part of what a call of a function gives denotes."""
        declared = self._declared(function.facts.returns, function, path, depth)
        if declared is not None or function.facts.is_generator:
            return declared
        ways = self._names.interpretation.return_values(function)
        return common(self.part(value.expr, value.scope, path, depth + 1) for value in ways)

    def result(self, function: LinkedFunction, last: Symbol | None, depth: int) -> Symbol | None:
        """Find the object that a call of a function gives: what is common to those that it returns.

        Args:
            function: The function.
            last: The object that it returns in no branch; None where it is not known.
            depth: How many steps were taken to get here; past a bound nothing else is found.

        Returns:
            The object; whatever is not known to be one, as `None`, is left out.
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
        """Find the object of which an annotation names the class, or that of a part."""
        if annotation is None:
            return None
        if not path:
            return self._objects.object_of(annotation, function, depth)
        inner = parts_of(annotation, path[0])
        return common(self._declared(each, function, path[1:], depth) for each in inner)


def step_to(index: m.Expr) -> int | str:
    """Give the step to the part of a collection at an index."""
    place = index.value if isinstance(index, m.Constant) else None
    return place if type(place) is int and place >= 0 else VALUE


def _chosen(items: tuple[m.Expr, ...], step: int | str) -> tuple[m.Expr, ...]:
    if isinstance(step, str) or any(isinstance(item, m.Starred) for item in items):
        return items[:_MOST_ITEMS]
    return items[step : step + 1]


def common(entities: Iterable[Symbol | None]) -> Instance | ClassObject | None:
    """Give what some entities have in common: they are one object, or of classes with one ancestor.

    Args:
        entities: The entities; what is known to be neither an object nor a class is left out. A function
            in a collection would be called by names that no search for its callers goes through.

    Returns:
        That one, or an object of the nearest common class, or that class; else the first of them.
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
