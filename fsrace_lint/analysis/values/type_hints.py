"""Types of objects, from annotations, defaults, and as a last resort names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint.analysis.values.abstract_values import Argument
from fsrace_lint.program.modules import LinkedClass
from fsrace_lint.program.symbols import ExternalName, Instance, package_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.annotations import class_names
from fsrace_lint.syntax.ast_names import dotted, last_name

if TYPE_CHECKING:
    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.analysis.values.abstract_values import Environment
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
            An instance of the first known class, or None.
        """
        if isinstance(annotation, m.Subscript) and last_name(annotation.value) in {"Type", "type"}:
            object_ = self.object_of(annotation.index, function, depth)
            return object_.of if isinstance(object_, Instance) else None
        for name in class_names(annotation):
            entity = self._names.named(name, function.module, depth)
            if isinstance(entity, (ExternalName, LinkedClass)) and not _is_of_typing(entity):
                return Instance(entity)
        return None

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


def _is_of_typing(entity: Symbol) -> bool:
    return isinstance(entity, ExternalName) and package_of(entity.name) in _TYPING


def _as_class(name: str) -> str:
    """Return the name of a variable as a class name: `_data_loader` becomes `DataLoader`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
