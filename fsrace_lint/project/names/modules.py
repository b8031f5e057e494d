"""The files of a project, found by module name, with their functions and classes."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from fsrace_lint.facts import model as m
from fsrace_lint.facts.heads import HERE, Gathered
from fsrace_lint.project.names.grouping import where

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from fsrace_lint.facts.heads import Head

_MOST_HEIRS: Final = 500
"""How many classes may inherit from one, before what they bind says nothing of its objects."""


class Module:
    """One file of the project; its facts are asked for where something in it is.

    `path` is as reported, `relative` counts from the project root; `name` is the
    dotted name counted from the root. `position` counts the files of the project.
    """

    def __init__(
        self,
        path: str,
        relative: str,
        facts: Callable[[], m.FileFacts],
        head: Head | None = None,
    ) -> None:
        """Name a file, with what gives its facts, and with its head where that is known."""
        self.path = path
        self.relative = relative
        self.name = module_name(relative)
        self.position = 0
        self.family: Family | None = None
        self._facts, self._head = facts, head

    @functools.cached_property
    def facts(self) -> m.FileFacts:
        """The facts."""
        return self._facts()

    @functools.cached_property
    def head(self) -> Head | Gathered:
        """The names in it."""
        return Gathered(self.facts) if self._head is None else self._head

    @functools.cached_property
    def functions(self) -> tuple[LinkedFunction, ...]:
        """All functions, the code of the module first."""
        functions = tuple(
            LinkedFunction(self, facts, index, self.classes[facts.owner] if facts.owner >= 0 else None)
            for index, facts in enumerate(self.facts.functions)
        )
        for function in functions[1:]:
            if function.facts.owner < 0 and function.facts.parent != 0:
                functions[function.facts.parent].nested[function.facts.name] = function
        return functions

    @functools.cached_property
    def inner(self) -> tuple[list[LinkedFunction], ...]:
        """For each function those that its own code defines, lambdas and methods too."""
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
        """The functions that stand in no other and in no class, by name."""
        found = (f for f in self.functions[1:] if f.facts.owner < 0 and f.facts.parent == 0)
        return {function.facts.name: function for function in found}

    @functools.cached_property
    def top_classes(self) -> dict[str, LinkedClass]:
        """The classes that stand in no function and in no other, by name."""
        found = (c for c in self.classes if c.facts.parent == 0 and "." not in c.facts.qualname)
        return {class_.facts.name: class_ for class_ in found}

    @functools.cached_property
    def imports(self) -> dict[str, m.Import]:
        """The imports, by the names that they bind."""
        return {row.local: row for row in self.facts.imports if row.name != "*"}

    @functools.cached_property
    def stars(self) -> tuple[m.Import, ...]:
        """The star imports."""
        return tuple(row for row in self.facts.imports if row.name == "*")

    @functools.cached_property
    def rebound(self) -> frozenset[str]:
        """The variables of the module that functions declare `global`, to bind them anew."""
        return frozenset(name for function in self.functions[1:] for name in function.facts.outer_names)

    @property
    def is_package(self) -> bool:
        """Whether this is the `__init__` file of a package."""
        return self.relative.endswith("__init__.py")

    @property
    def code(self) -> LinkedFunction:
        """The code that runs when the module is imported."""
        return self.functions[0]


class Family(Protocol):
    """Tells how the classes of a project are related."""

    def bases(self, class_: LinkedClass, /) -> tuple[LinkedClass, ...]:
        """Give those bases of a class that are in the project too."""

    def subclasses(self, class_: LinkedClass, /) -> Iterable[LinkedClass]:
        """Give the classes that have a class among their bases, in the order of the project."""


class _Qualified:
    """Something that a module defines; it is shown by its name, as its fields lead to the whole project."""

    __slots__ = ()

    module: Module
    facts: m.Function | m.Class

    def __repr__(self) -> str:
        return self.qualified

    @property
    def qualified(self) -> str:
        """The dotted name from the root."""
        return f"{self.module.name}.{self.facts.qualname}"


class LinkedFunction(_Qualified, msgspec.Struct, eq=False):
    """A function of the project: its syntax and where it stands."""

    module: Module
    facts: m.Function
    index: int
    owner: LinkedClass | None = None
    nested: dict[str, LinkedFunction] = msgspec.field(default_factory=dict)

    @property
    def order(self) -> tuple[int, int]:
        """What sorts the functions of a project: by file, and as they stand there."""
        return self.module.position, self.index

    @property
    def enclosing(self) -> LinkedFunction | None:
        """The function whose code defines this one."""
        return None if self.facts.parent < 0 else self.module.functions[self.facts.parent]

    @property
    def takes_object(self) -> bool:
        """Whether a call of it as `object.name(…)` passes the object or the class unseen."""
        return self.owner is not None and not any(
            isinstance(decorator, m.Name) and decorator.id == "staticmethod"
            for decorator in self.facts.decorators
        )

    @property
    def parameters(self) -> dict[str, m.Parameter]:
        """Its parameters by name."""
        return {parameter.name: parameter for parameter in self.facts.parameters}


class LinkedClass(_Qualified, msgspec.Struct, eq=False, dict=True):
    """A class of the project."""

    module: Module
    facts: m.Class

    @functools.cached_property
    def methods(self) -> dict[str, LinkedFunction]:
        """The functions defined in its body, by name."""
        return {name: self.module.functions[index] for name, index in self.facts.methods}

    @functools.cached_property
    def bases(self) -> tuple[LinkedClass, ...]:
        """Those of its bases that are in the project too."""
        return () if self.module.family is None else self.module.family.bases(self)

    @functools.cached_property
    def subclasses(self) -> tuple[LinkedClass, ...]:
        """The classes of the project that have it among their bases, each as often as it does."""
        return () if self.module.family is None else tuple(self.module.family.subclasses(self))

    def ancestors(self) -> Iterable[LinkedClass]:
        """Give this class and those it inherits from, nearest first, each once."""
        return self._ancestors

    def descendants(self) -> Iterable[LinkedClass]:
        """Give this class and those that inherit from it, each once."""
        return self._descendants

    @functools.cached_property
    def _ancestors(self) -> dict[LinkedClass, None]:
        seen: dict[LinkedClass, None] = {}
        waiting = [self]
        while waiting:
            class_ = waiting.pop(0)
            if class_ not in seen:
                seen[class_] = None
                waiting.extend(class_.bases)
        return seen

    @functools.cached_property
    def _descendants(self) -> dict[LinkedClass, None]:
        seen: dict[LinkedClass, None] = {}
        waiting = [self]
        while waiting:
            class_ = waiting.pop()
            if class_ not in seen:
                seen[class_] = None
                waiting.extend(class_.subclasses)
        return seen

    @functools.cached_property
    def relatives(self) -> tuple[LinkedClass, ...]:
        """Those whose code an object of this class may run: it, its ancestors and its descendants.

        Of a class with very many descendants nothing can be said by what each does: they are left out.
        """
        family = self._descendants  # with this one
        heirs = family if len(family) - 1 <= _MOST_HEIRS else ()
        return tuple(dict.fromkeys((*self._ancestors, *heirs)))

    def binding(self, name: str) -> Iterable[LinkedFunction]:
        """Give the methods of its own that bind an attribute of a name."""
        return self._binding.get(name, ())

    @functools.cached_property
    def _binding(self) -> dict[str, list[LinkedFunction]]:
        methods = (method for method in self.methods.values() if method.facts.parameters)
        return where((method, method.facts.attributes) for method in methods)

    def method(self, name: str) -> LinkedFunction | None:
        """Find a method here or in the classes this one inherits from."""
        return next((class_.methods[name] for class_ in self.ancestors() if name in class_.methods), None)


def link_module(path: str, relative: str, facts: m.FileFacts) -> Module:
    """Make the functions and classes of one file findable by name.

    Args:
        path: The path to report.
        relative: The path from the project root, with forward slashes.
        facts: What was extracted from the file.

    Returns:
        The module; its classes are related to others once it is in a project.
    """
    return Module(path, relative, lambda: facts)


def module_name(relative: str) -> str:
    """Turn `pkg/sub/mod.py` into `pkg.sub.mod`, and `pkg/__init__.py` into `pkg`."""
    stem = relative.rpartition(".")[0] if relative.endswith((".py", ".pyw")) else relative
    parts = [part for part in stem.split("/") if part not in {"", "."}]
    if parts and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


class ModuleTable:
    """Finds modules by the names that import statements use.

    A module answers to its name from the project root, to its name from the
    folder above its topmost package, and, for files of its own folder, to its
    bare name: that is how scripts import their neighbors. A file in a folder that
    is put on the path at run time is found by its bare name too, if no module has
    that name and it lies nearest to the importing file. By its bare name no file in a
    package is taken for a library that is known, as `pkg/utils/torch.py` is not `torch`.
    """

    def __init__(
        self, modules: Iterable[Module], also: Mapping[str, Module | None], libraries: Container[str] = ()
    ) -> None:
        """Index the modules of a project, under further relative paths too."""
        self.modules = tuple(modules)
        self._libraries = libraries
        for position, module in enumerate(self.modules):
            module.position = position
        linked = {module_name(path): module for path, module in also.items() if module is not None}
        self._linked = linked
        self._by_name: dict[str, Module] = {**linked, **{module.name: module for module in self.modules}}
        self._by_short_name: dict[str, list[Module]] = {}
        self._by_last_name: dict[str, list[Module]] = {}
        self._found: dict[tuple[str, Module], Module | None] = {}
        packages = {module.name for module in self.modules if module.is_package}
        for module in self.modules:
            self._by_last_name.setdefault(module.name.rpartition(".")[2], []).append(module)
            short = _from_topmost_package(module, packages)
            if short != module.name:
                self._by_short_name.setdefault(short, []).append(module)

    @functools.cached_property
    def _deriving(self) -> dict[str, list[Module]]:
        return where((module, module.head.bases) for module in self.modules)

    @functools.cached_property
    def _naming(self) -> dict[str, list[Module]]:
        return where((module, module.head.imported) for module in self.modules)

    @functools.cached_property
    def renamed(self) -> dict[str, set[str]]:
        """The names under which imports bind a name, where these are others."""
        found: dict[str, set[str]] = {}
        for module in self.modules:
            for name, local in module.head.renamed:
                found.setdefault(name, set()).add(local)
        return found

    @functools.cached_property
    def _defining(self) -> dict[str, list[Module]]:
        return where((module, module.head.classes) for module in self.modules)

    def classes_named(self, name: str) -> tuple[LinkedClass, ...]:
        """Give the classes of a name that stand in no function and no other class."""
        found = (module.top_classes.get(name) for module in self._defining.get(name, ()))
        return tuple(class_ for class_ in found if class_ is not None)

    def deriving(self, name: str) -> list[Module]:
        """Give the modules in which a class may have a base that has a name where it is defined."""
        names, waiting = {name}, [name]
        while waiting:
            new = self.renamed.get(waiting.pop(), set()) - names
            names |= new
            waiting += new
        return self._in_order(module for each in names for module in self._deriving.get(each, ()))

    def naming(self, module: Module) -> list[Module]:
        """Give the modules that may import a module."""
        names = {module.name, *(name for name, target in self._linked.items() if target is module)}
        if "" in names:
            return list(self.modules)
        last = {HERE, *(name.rpartition(".")[2] for name in names)}
        return self._in_order(each for name in last for each in self._naming.get(name, ()))

    @staticmethod
    def _in_order(modules: Iterable[Module]) -> list[Module]:
        return sorted(dict.fromkeys(modules), key=lambda module: module.position)

    def find(self, name: str, importer: Module) -> Module | None:
        """Find the module an absolute import means, or None where it is not of the project."""
        key = name, importer
        if key not in self._found:
            self._found[key] = self._find(name, importer)
        return self._found[key]

    def _find(self, name: str, importer: Module) -> Module | None:
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names:
            folder = importer.relative.rpartition("/")[0].replace("/", ".")
            beside = self._by_name.get(f"{folder}.{name}" if folder else name)
            if beside is not None and beside is not importer and not self._means_library(top, importer):
                return beside
        found = self._by_name.get(name)
        if found is not None and found is not importer:
            return found
        candidates = self._by_short_name.get(name) or self._beside(name, importer)
        return max(candidates, key=lambda module: _common(module.relative, importer.relative), default=None)

    def _means_library(self, top: str, importer: Module) -> bool:
        """Tell whether a file beside another one, in a package, is not what that imports by a bare name."""
        package = importer.name if importer.is_package else importer.name.rpartition(".")[0]
        inside = package in self._by_name and self._by_name[package].is_package
        return top in self._libraries and inside and not importer.facts.is_script

    def _beside(self, name: str, importer: Module) -> list[Module]:
        """Find files that lie in a folder around the importing file, and have no name of a library."""
        if "." in name or name in sys.stdlib_module_names or name in self._libraries:
            return []
        return [
            module
            for module in self._by_last_name.get(name, ())
            if module is not importer
            and _common(module.relative, importer.relative) > 0
            and not module.is_package
        ]

    def relative(self, row: m.Import, importer: Module) -> str:
        """Give the dotted name from the root of the module a relative import means."""
        parts = importer.name.split(".") if importer.name else []
        up = row.level - (1 if importer.is_package else 0)
        base = parts[: len(parts) - up] if up else parts
        return ".".join([*base, row.module] if row.module else base)

    def exact(self, name: str) -> Module | None:
        """Find a module by its name from the root."""
        return self._by_name.get(name)


def _from_topmost_package(module: Module, packages: set[str]) -> str:
    parts = module.name.split(".")
    first = len(parts) - (1 if not module.is_package else 0)
    while first > 0 and ".".join(parts[:first]) in packages:
        first -= 1
    outside = first == len(parts) - 1 and not module.is_package
    return (module.name if outside else ".".join(parts[first:])).removeprefix("src.")


def _common(one: str, two: str) -> int:
    """Count the folders that two paths have in common, from the root on."""
    pairs = zip(one.split("/"), two.split("/"), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
