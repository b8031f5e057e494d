"""The files of a project, with their functions and classes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from fsrace_lint.program.grouping import where
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.name_index_entry import ComputedIndexEntry
from fsrace_lint.syntax.traversal import all_in, bound_in, bound_names, constants_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from fsrace_lint.syntax.name_index_entry import PackedIndexEntry

_NOT_DONE: Final = frozenset({"NotImplementedError", "type", "self", "__class__", "__name__", "str"})
"""The names that the code of an abstract method can refer to."""
_NONE: Final[Mapping[str, LinkedFunction]] = MappingProxyType({})


class Module:
    """A file of the project, whose facts are loaded on demand.

    Attributes:
        path: The path to report.
        relative: The path, relative to the root of the project.
        name: The dotted name, relative to the root.
        position: The position among the files of the project.
        family: The relations between the classes of the project, if it is linked.
        head: The names in the file.
    """

    def __init__(
        self,
        path: str,
        relative: str,
        facts: Callable[[], m.FileFacts],
        head: PackedIndexEntry | ComputedIndexEntry,
    ) -> None:
        """Initialize the module with a function that loads its facts, and with its head."""
        self.path = path
        self.relative = relative
        self.name = module_name(relative)
        self.position = 0
        self.family: ClassRelations | None = None
        self._facts, self.head = facts, head

    @functools.cached_property
    def facts(self) -> m.FileFacts:
        """The facts of the file."""
        return self._facts()

    @functools.cached_property
    def functions(self) -> tuple[LinkedFunction, ...]:
        """All functions; the code of the module is the first."""
        functions = tuple(
            LinkedFunction(self, facts, index, self.classes[facts.owner] if facts.owner >= 0 else None)
            for index, facts in enumerate(self.facts.functions)
        )
        nested: dict[int, dict[str, LinkedFunction]] = {}
        for function in functions[1:]:
            if function.facts.owner < 0 and function.facts.parent != 0:
                nested.setdefault(function.facts.parent, {})[function.facts.name] = function
        for index, inside in nested.items():
            functions[index].nested = inside
        return functions

    @functools.cached_property
    def inner(self) -> tuple[list[LinkedFunction], ...]:
        """For each function, the functions that its own code defines, including lambdas and methods."""
        found: tuple[list[LinkedFunction], ...] = tuple([] for _ in self.functions)
        for function in self.functions[1:]:
            found[function.facts.parent].append(function)
        return found

    @functools.cached_property
    def classes(self) -> tuple[LinkedClass, ...]:
        """All classes."""
        return tuple(LinkedClass(self, facts) for facts in self.facts.classes)

    @functools.cached_property
    def top_functions(self) -> dict[str, LinkedFunction]:
        """The functions outside of functions and classes, by name."""
        found = (f for f in self.functions[1:] if f.facts.owner < 0 and f.facts.parent == 0)
        return {function.facts.name: function for function in found}

    @functools.cached_property
    def top_classes(self) -> dict[str, LinkedClass]:
        """The classes outside of functions and classes, by name."""
        found = (c for c in self.classes if c.facts.parent == 0 and "." not in c.facts.qualname)
        return {class_.facts.name: class_ for class_ in found}

    @functools.cached_property
    def imports(self) -> dict[str, m.Import]:
        """The imports except star imports, by the name that each binds."""
        return {row.local: row for row in self.facts.imports if row.name != "*"}

    @functools.cached_property
    def stars(self) -> tuple[m.Import, ...]:
        """The star imports."""
        return tuple(row for row in self.facts.imports if row.name == "*")

    @functools.cached_property
    def rebound(self) -> frozenset[str]:
        """The module variables that functions declare `global`."""
        return frozenset(name for function in self.functions[1:] for name in function.facts.outer_names)

    @functools.cached_property
    def set_on_classes(self) -> dict[tuple[int, str], set[str]]:
        """The names that class bodies bind or code sets on classes, by enclosing function and class name."""
        found: dict[tuple[int, str], set[str]] = {}
        for parent in {class_.parent for class_ in self.facts.classes}:
            around = self.facts.functions[parent]
            for statement in all_in(around.body):
                if isinstance(statement, m.DefineClass):
                    name = self.facts.classes[statement.index].name
                    found.setdefault((parent, name), set()).update(bound_names(statement.body))
            for bound in bound_in(around):
                name, dot, attribute = bound.partition(".")
                if dot:
                    found.setdefault((parent, name), set()).add(attribute)
        return found

    @functools.cached_property
    def class_bodies(self) -> dict[str, tuple[m.Statement, ...]]:
        """The bodies of classes that module code defines once and unconditionally, by class name."""
        found: dict[str, list[tuple[m.Statement, ...]]] = {}
        for statement in self.facts.functions[0].body:
            if isinstance(statement, m.DefineClass):
                found.setdefault(self.facts.classes[statement.index].name, []).append(statement.body)
        return {name: bodies[0] for name, bodies in found.items() if len(bodies) == 1}

    @functools.cached_property
    def bound(self) -> frozenset[str]:
        """The names that module code may bind; attributes as `x.name`."""
        return frozenset(bound_in(self.facts.functions[0]))

    def calls(self, names: AbstractSet[str]) -> bool:
        """Return whether any code in the file calls one of some names."""
        calling = ((function, name) for function in self.facts.functions for name in function.called)
        return any(name in names and function.use(name) & ~m.HANDED for function, name in calling)

    @property
    def interface(self) -> tuple[object, ...]:
        """The part of the facts that determines class relations and which classes bind an attribute."""
        functions = self.facts.functions
        classes = [
            (
                msgspec.structs.replace(class_, methods=()),
                [(name, functions[index].attributes) for name, index in class_.methods],
            )
            for class_ in self.facts.classes
        ]
        return self.facts.imports, self.facts.is_script, classes, self.set_on_classes

    @property
    def is_package(self) -> bool:
        """Whether this is the `__init__` file of a package."""
        return self.relative.endswith("__init__.py")

    @property
    def code(self) -> LinkedFunction:
        """The code that runs when the module is imported."""
        return self.functions[0]


class ClassRelations(Protocol):
    """The relations between the classes of a project."""

    def bases(self, class_: LinkedClass, /) -> tuple[LinkedClass, ...]:
        """Return the bases of a class that are in the project."""

    def ancestors(self, class_: LinkedClass, /) -> Iterable[LinkedClass]:
        """Return a class and its ancestors, nearest first, each once."""

    def descendants(self, class_: LinkedClass, /) -> Iterable[LinkedClass]:
        """Return a class and its descendants, each once."""

    def relatives(self, class_: LinkedClass, /) -> tuple[LinkedClass, ...]:
        """Return the classes whose code an object of a class may run."""

    def method(self, class_: LinkedClass, name: str, /) -> LinkedFunction | None:
        """Return a method of a class or of its nearest ancestor that has it, or None."""

    def inherited(self, class_: LinkedClass, name: str, /) -> LinkedFunction | None:
        """Return a method of the nearest ancestor that has it, or None."""


class _Qualified:
    """A definition in a module. Its `repr` is its name, because its fields lead to the whole project."""

    __slots__ = ()

    module: Module
    facts: m.Function | m.Class

    def __repr__(self) -> str:
        return self.qualified

    @property
    def qualified(self) -> str:
        """The dotted name, relative to the root of the project."""
        return f"{self.module.name}.{self.facts.qualname}"


class LinkedFunction(_Qualified, msgspec.Struct, eq=False):
    """A function of the project: its syntax, and its place in a module."""

    module: Module
    facts: m.Function
    index: int
    owner: LinkedClass | None = None
    nested: Mapping[str, LinkedFunction] = _NONE

    @property
    def order(self) -> tuple[int, int]:
        """A sort key: by file, then by source order."""
        return self.module.position, self.index

    @property
    def enclosing(self) -> LinkedFunction | None:
        """The function whose code defines this one."""
        return None if self.facts.parent < 0 else self.module.functions[self.facts.parent]

    @property
    def takes_object(self) -> bool:
        """Whether a call as `object.name(…)` passes the object or the class implicitly."""
        return self.owner is not None and not any(
            isinstance(decorator, m.Name) and decorator.id == "staticmethod"
            for decorator in self.facts.decorators
        )

    @property
    def implementations(self) -> tuple[LinkedFunction, ...]:
        """The function and, for an abstract method, its only override."""
        if self.owner is None or not _NOT_DONE.issuperset(self.facts.referenced_names):
            return (self,)
        others = set(self.overrides)
        return (self, *others) if len(others) == 1 else (self,)

    @property
    def is_stub(self) -> bool:
        """Whether this is a method without code, such as an abstract one: its result is not known."""
        return self.owner is not None and not self.facts.body

    @property
    def overrides(self) -> tuple[LinkedFunction, ...]:
        """The methods of subclasses that run instead of this one."""
        classes = () if self.owner is None else self.owner.descendants()
        found = (class_.methods.get(self.facts.name) for class_ in classes)
        return tuple(method for method in found if method is not None and method is not self)

    @property
    def positional(self) -> list[str]:
        """The names of the parameters that receive the positional arguments of a call."""
        names = [p.name for p in self.facts.parameters if p.kind == "positional"]
        return names[1:] if self.takes_object else names

    @property
    def parameters(self) -> dict[str, m.Parameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.facts.parameters}


class LinkedClass(_Qualified, msgspec.Struct, eq=False, dict=True):
    """A class of the project."""

    module: Module
    facts: m.Class

    @functools.cached_property
    def methods(self) -> dict[str, LinkedFunction]:
        """The functions defined in the class body, by name."""
        return {name: self.module.functions[index] for name, index in self.facts.methods}

    @property
    def bases(self) -> tuple[LinkedClass, ...]:
        """The bases that are in the project."""
        return () if self.module.family is None else self.module.family.bases(self)

    def ancestors(self) -> Iterable[LinkedClass]:
        """Return this class and its ancestors, nearest first, each once."""
        return (self,) if self.module.family is None else self.module.family.ancestors(self)

    def descendants(self) -> Iterable[LinkedClass]:
        """Return this class and its descendants, each once."""
        return (self,) if self.module.family is None else self.module.family.descendants(self)

    @property
    def relatives(self) -> tuple[LinkedClass, ...]:
        """The classes whose code an object of this class may run: this class, ancestors, and descendants.

        Descendants are left out if there are very many, because then their code says little about the object.
        """
        return (self,) if self.module.family is None else self.module.family.relatives(self)

    def binding(self, name: str) -> Iterable[LinkedFunction]:
        """Return the methods of this class that bind an attribute."""
        return self._binding.get(name, ())

    @functools.cached_property
    def _binding(self) -> dict[str, tuple[LinkedFunction, ...]]:
        methods = (method for method in self.methods.values() if method.facts.parameters)
        return where((method, method.facts.attributes) for method in methods)

    def may_set(self, name: str) -> bool:
        """Return whether the class body may bind an attribute, or the surrounding code may set it."""
        return name in self.module.set_on_classes.get((self.facts.parent, self.facts.name), ())

    def constant(self, name: str) -> m.Constant | None:
        """Return the constant that the class body assigns to a name, unless the module may rebind it."""
        constant = self._constants.get(name)
        return None if f"{self.facts.name}.{name}" in self.module.bound else constant

    @functools.cached_property
    def _constants(self) -> dict[str, m.Constant]:
        body = () if self.facts.parent else self.module.class_bodies.get(self.facts.name, ())
        return constants_in(body, walrus=self.module.facts.functions[0].has_walrus)

    def constant_of_objects(self, method: LinkedFunction, name: str) -> m.Constant | None:
        """Return the constant that a method assigns to an attribute of its object, or None."""
        if method not in self._constants_of_objects:
            self._constants_of_objects[method] = constants_in(method.facts.body, walrus=False)
        return self._constants_of_objects[method].get(f"{method.facts.parameters[0].name}.{name}")

    @functools.cached_property
    def _constants_of_objects(self) -> dict[LinkedFunction, dict[str, m.Constant]]:
        return {}

    def method(self, name: str) -> LinkedFunction | None:
        """Return a method of this class or of its nearest ancestor that has it, or None."""
        family = self.module.family
        return self.methods.get(name) if family is None else family.method(self, name)

    def inherited(self, name: str) -> LinkedFunction | None:
        """Return a method of the nearest ancestor that has it, or None."""
        return None if self.module.family is None else self.module.family.inherited(self, name)

    def declares(self, name: str) -> bool:
        """Return whether this class or an ancestor annotates an attribute."""
        return any(name == each for class_ in self.ancestors() for each, _ in class_.facts.annotated)


def link_module(path: str, relative: str, facts: m.FileFacts) -> Module:
    """Create a module from the facts of a file.

    Args:
        path: The path to report.
        relative: The path, relative to the root of the project, with forward slashes.
        facts: The facts of the file.

    Returns:
        The module. Its classes are not related to others until it is part of a project.
    """
    return Module(path, relative, lambda: facts, ComputedIndexEntry(facts))


@functools.cache
def module_name(relative: str) -> str:
    """Convert `pkg/sub/mod.py` to `pkg.sub.mod`, and `pkg/__init__.py` to `pkg`."""
    stem = relative.rpartition(".")[0] if relative.endswith((".py", ".pyw")) else relative
    parts = [part for part in stem.split("/") if part not in {"", "."}]
    if parts and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)
