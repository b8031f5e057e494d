"""The symbols that names can denote, in libraries and in the project."""

from __future__ import annotations

from typing import Final, TypeAlias, TypeGuard

from fsrace_lint.program.modules import LinkedClass, LinkedFunction, Module
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

_PROPERTIES: Final = frozenset({"property", "cached_property"})


DEEPEST: Final = 16
"""The maximum number of steps from an expression to the symbol that it denotes."""


class ExternalName(Record, frozen=True):
    """A qualified name outside the project."""

    name: str


class Instance(Record, frozen=True):
    """An instance of a class."""

    of: ExternalName | LinkedClass


class ClassObject(Record, frozen=True):
    """A class that is an element of a collection. Calls of it there use none of its names."""

    of: LinkedClass


class ModuleVariable(Record, frozen=True):
    """A variable of a module of the project."""

    module: Module
    name: str


Symbol: TypeAlias = (
    ExternalName | Instance | ClassObject | ModuleVariable | Module | LinkedFunction | LinkedClass
)


def qualified_name(entity: Symbol | None) -> str | None:
    """Return the qualified name of a symbol as library models spell it, or None if it has none."""
    match entity:
        case ExternalName(name=name):
            return name
        case LinkedFunction() | LinkedClass():
            return entity.qualified
        case ModuleVariable(module=module, name=name):
            return f"{module.name}.{name}"
        case _:
            return None


def is_class(entity: Symbol | None) -> TypeGuard[ExternalName | LinkedClass]:
    """Return whether a symbol is a class: of the project, or of a library, judging by its name."""
    if isinstance(entity, ExternalName):
        return entity.name.rpartition(".")[2][:1].isupper()
    return isinstance(entity, LinkedClass)


def package_of(name: str) -> str:
    """Return the top-level package of a qualified name."""
    return name.partition(".")[0]


def as_function(entity: Symbol | None) -> LinkedFunction | None:
    """Return the function that a call of a symbol runs, or None."""
    if isinstance(entity, LinkedFunction):
        return entity
    return entity.method("__init__") if isinstance(entity, LinkedClass) else None


def is_property(entity: Symbol | None) -> TypeGuard[LinkedFunction]:
    """Return whether a symbol is the getter of a property."""
    if not isinstance(entity, LinkedFunction):
        return False
    return any(last_name(decorator) in _PROPERTIES for decorator in entity.facts.decorators)
