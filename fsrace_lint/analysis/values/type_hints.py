"""Types of objects, from annotations, defaults, and as a last resort names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeGuard

from fsrace_lint.analysis.values.abstract_values import Argument, Narrowed
from fsrace_lint.program.modules import LinkedClass
from fsrace_lint.program.symbols import ExternalName, Instance, package_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.annotations import class_names
from fsrace_lint.syntax.ast_names import dotted, implied, last_name
from fsrace_lint.syntax.traversal import target_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.analysis.values.abstract_values import Annotated, Binding, Environment
    from fsrace_lint.program.module_table import ModuleTable
    from fsrace_lint.program.modules import LinkedFunction, Module
    from fsrace_lint.program.symbols import Symbol

_TYPING: Final = frozenset({"typing", "typing_extensions"})
"""Modules whose names are not the class of an object."""


class TypeResolver(Protocol):
    """The part of the resolver that `TypeHints` uses."""

    table: ModuleTable
    interpretation: Interpretation

    def symbol(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Symbol | None:
        """Return the symbol that an expression denotes."""

    def named(self, chain: str, module: Module, depth: int) -> Symbol | None:
        """Return the symbol that `a.b.c` denotes in a module."""


class TypeHints:
    """Finds the symbols of parameters and annotations."""

    def __init__(self, names: TypeResolver) -> None:
        """Initialize with the resolver of the names in annotations."""
        self._names = names

    def argument(self, function: LinkedFunction, parameter: m.Parameter, depth: int) -> Symbol | None:
        """Return the symbol of a parameter: `self`, `cls`, its annotation, or its default."""
        first = function.facts.parameters[0].name if function.facts.parameters else None
        if function.owner is not None and parameter.name == first:
            decorators = {dotted(decorator) for decorator in function.facts.decorators}
            if "staticmethod" not in decorators:
                return function.owner if "classmethod" in decorators else Instance(function.owner)
        if parameter.kind in {"args", "kwargs"}:
            return None
        declared = parameter.annotation and self.object_of(parameter.annotation, function, depth)
        return declared or self._default(function, parameter, depth)

    def _default(self, function: LinkedFunction, parameter: m.Parameter, depth: int) -> Symbol | None:
        """Return the symbol of the default of a parameter: a function, a class, or an instance."""
        if not isinstance(parameter.default, (m.Name, m.Attribute, m.Call)):
            return None
        outer = (
            None
            if function.enclosing is None
            else self._names.interpretation.final_environment(function.enclosing)
        )
        return None if outer is None else self._names.symbol(parameter.default, outer, depth + 1)

    def object_of(self, annotation: m.Expr, function: LinkedFunction, depth: int) -> Symbol | None:
        """Return the instance of the class that an annotation in a function names.

        Args:
            annotation: The annotation. For `Type[X]`, the result is the class itself.
            function: The function. Its module resolves the names.
            depth: The number of steps so far. Beyond a limit, the result is None.

        Returns:
            An instance of the first class with a model, or else of the first known class, or None.
        """
        if isinstance(annotation, m.Subscript) and last_name(annotation.value) in {"Type", "type"}:
            object_ = self.object_of(annotation.index, function, depth)
            return object_.of if isinstance(object_, Instance) else None
        named = list(self._named(annotation, function, depth))
        return next((each for each in named if self._is_modeled(each.of)), None) or next(iter(named), None)

    def _named(self, annotation: m.Expr, function: LinkedFunction, depth: int) -> Iterator[Instance]:
        """Yield an instance of each known class that an annotation names."""
        for name in class_names(annotation):
            entity = self._names.named(name, function.module, depth)
            if isinstance(entity, (ExternalName, LinkedClass)) and not _is_of_typing(entity):
                yield Instance(entity)

    def annotated(self, value: Annotated, depth: int) -> Symbol | None:
        """Return the instance of the class that an assignment to a local name declares, or None."""
        found = self.object_of(value.annotation, value.scope.function, depth)
        return found if isinstance(found, Instance) and self._is_modeled(found.of) else None

    def narrowed(self, told: Narrowed, entity: Symbol | None, depth: int) -> Symbol | None:
        """Return the symbol of a variable after a test of its class.

        Args:
            told: The test.
            entity: The symbol of the variable without it.
            depth: The number of steps so far.
        """
        tested = told.expr.items if isinstance(told.expr, m.Sequence) else (told.expr,)
        classes = [self._names.symbol(each, told.scope, depth + 1) for each in tested]
        if told.holds:
            known = [each for each in classes if self._is_modeled(each)]
            is_one = len(set(known)) == 1 or all(isinstance(each, ExternalName) for each in known)
            is_told = is_one and len(known) == len(classes) and not _is_one_of(entity, known)
            return Instance(known[0]) if is_told else entity
        bound = told.bound
        annotation = bound.parameter.annotation if isinstance(bound, Argument) else None
        if not isinstance(bound, Argument) or annotation is None:
            return entity
        others = (each for each in self._named(annotation, bound.function, depth) if each.of not in classes)
        return next(others, entity)

    def _is_modeled(self, entity: Symbol | None) -> TypeGuard[ExternalName | LinkedClass]:
        """Return whether a class is in the project, or in a library with a model."""
        if isinstance(entity, ExternalName):
            return package_of(entity.name) in self._names.table.libraries
        return isinstance(entity, LinkedClass)

    def namesake(self, value: m.Expr, scope: Environment) -> Instance | None:
        """Return an instance of the only class that is named like an unknown value, or None."""
        if isinstance(value, m.Name):
            bound = scope.get(value.id)
            if isinstance(bound, Argument) and bound.parameter.annotation is not None:
                return None
        elif not isinstance(value, m.Attribute):
            return None
        named = self._names.table.classes_named(_as_class(last_name(value)))
        return Instance(named[0]) if len(named) == 1 else None


def tested_class(name: str) -> str:
    """Return the name in an environment of what `isinstance()` tells about a variable."""
    return f"isinstance({name})"


def narrowed_by(test: m.Expr, scope: Environment, *, truth: bool) -> dict[str, Binding]:
    """Return what the outcome of a condition tells about the classes of variables, by `tested_class`."""
    found: dict[str, Binding] = {}
    for part, holds in implied(test, truth=truth):
        match part:
            case m.Call(function=m.Name(id="isinstance"), arguments=(value, classes)):
                name = target_name(value)
                if name is not None:
                    told = Narrowed(classes, scope, bound=scope.get(name), holds=holds)
                    found[tested_class(name)] = told
    return found


def _is_one_of(entity: Symbol | None, classes: Iterable[ExternalName | LinkedClass]) -> bool:
    """Return whether a symbol is an instance of one of some classes of the project."""
    of = entity.of if isinstance(entity, Instance) else None
    return isinstance(of, LinkedClass) and not set(of.ancestors()).isdisjoint(classes)


def _is_of_typing(entity: Symbol) -> bool:
    return isinstance(entity, ExternalName) and package_of(entity.name) in _TYPING


def _as_class(name: str) -> str:
    """Return the name of a variable as a class name: `_data_loader` becomes `DataLoader`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
