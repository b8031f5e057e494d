"""What objects are by what a function says of them: annotations, defaults, and at last names."""

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
"""What these have names no class of an object."""


class TypeResolver(Protocol):
    """What the resolver knows of names."""

    table: ModuleTable
    interpretation: Interpretation

    def symbol(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Symbol | None:
        """Find what an expression denotes."""

    def named(self, chain: str, module: Module, depth: int) -> Symbol | None:
        """Find what `a.b.c` denotes in the code of a module."""


class TypeHints:
    """Finds the objects of parameters and annotations."""

    def __init__(self, names: TypeResolver) -> None:
        """Take what resolves the names in annotations."""
        self._names = names

    def argument(self, function: LinkedFunction, parameter: m.Parameter, depth: int) -> Symbol | None:
        """Find what a parameter is: the object or class of a method, as annotated, or by its default."""
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
        """Find the function, class or object that a parameter is where it is not given."""
        if not isinstance(parameter.default, (m.Name, m.Attribute, m.Call)):
            return None
        outer = (
            None
            if function.enclosing is None
            else self._names.interpretation.final_environment(function.enclosing)
        )
        return None if outer is None else self._names.symbol(parameter.default, outer, depth + 1)

    def object_of(self, annotation: m.Expr, function: LinkedFunction, depth: int) -> Symbol | None:
        """Find the object of which an annotation in a function names the class, or that class itself.

        Args:
            annotation: The annotation; `Type[X]` is the class.
            function: The function by whose module the names in it are read.
            depth: How many steps were taken to get here; past a bound the answer is None.

        Returns:
            The object of the first class that is known; None where there is none.
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
        """Give an object of the only class that has the name of what nothing else is known of."""
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
    """Spell the name of a variable as that of a class: `_data_loader` becomes `DataLoader`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
