"""What names can denote: things of libraries, and the project's own."""

from __future__ import annotations

from typing import Final, TypeAlias, TypeGuard

from fsrace_lint.program.modules import LinkedClass, LinkedFunction, Module
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

_PROPERTIES: Final = frozenset({"property", "cached_property"})


DEEPEST: Final = 16
"""How many steps are taken from an expression to what it denotes."""


class ExternalName(Record, frozen=True):
    """Something outside the project, by qualified name."""

    name: str


class Instance(Record, frozen=True):
    """An object of a class."""

    of: ExternalName | LinkedClass


class ClassObject(Record, frozen=True):
    """A class that is a part of a collection; what calls it there is found under none of its names."""

    of: LinkedClass


class ModuleVariable(Record, frozen=True):
    """A variable of a module of the project."""

    module: Module
    name: str


Symbol: TypeAlias = (
    ExternalName | Instance | ClassObject | ModuleVariable | Module | LinkedFunction | LinkedClass
)


def qualified_name(entity: Symbol | None) -> str | None:
    """Spell an entity as the catalog would, or None where it has no such name."""
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
    """Tell whether something is a class: of the project, or of a library by its name."""
    if isinstance(entity, ExternalName):
        return entity.name.rpartition(".")[2][:1].isupper()
    return isinstance(entity, LinkedClass)


def package_of(name: str) -> str:
    """Give the package that a qualified name begins with."""
    return name.partition(".")[0]


def as_function(entity: Symbol | None) -> LinkedFunction | None:
    """Give the function that calling an entity runs."""
    if isinstance(entity, LinkedFunction):
        return entity
    return entity.method("__init__") if isinstance(entity, LinkedClass) else None


def is_property(entity: Symbol | None) -> TypeGuard[LinkedFunction]:
    """Tell whether reading an attribute runs this function."""
    if not isinstance(entity, LinkedFunction):
        return False
    return any(last_name(decorator) in _PROPERTIES for decorator in entity.facts.decorators)
