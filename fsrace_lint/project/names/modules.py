"""The files of a project, found by module name, with their functions and classes."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fsrace_lint.facts import model as m

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(eq=False, repr=False)
class Module:
    """One file of the project.

    `path` is as reported, `relative` counts from the project root; `name` is the
    dotted name counted from the root.
    """

    path: str
    relative: str
    name: str
    facts: m.FileFacts
    functions: tuple[LinkedFunction, ...] = ()
    classes: tuple[LinkedClass, ...] = ()
    imports: dict[str, m.Import] = field(default_factory=dict)
    stars: tuple[m.Import, ...] = ()
    top_functions: dict[str, LinkedFunction] = field(default_factory=dict)
    top_classes: dict[str, LinkedClass] = field(default_factory=dict)

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


@dataclass(eq=False, repr=False)
class LinkedFunction:
    """A function of the project: its syntax and where it stands; `order` counts through all files."""

    module: Module
    facts: m.Function
    index: int
    owner: LinkedClass | None = None
    order: int = 0
    nested: dict[str, LinkedFunction] = field(default_factory=dict)

    @property
    def enclosing(self) -> LinkedFunction | None:
        """The function whose code defines this one."""
        return None if self.facts.parent < 0 else self.module.functions[self.facts.parent]

    @property
    def qualified(self) -> str:
        """The dotted name from the root."""
        return f"{self.module.name}.{self.facts.qualname}"

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


@dataclass(eq=False, repr=False)
class LinkedClass:
    """A class of the project; `bases` holds those of its bases that are in the project too."""

    module: Module
    facts: m.Class
    methods: dict[str, LinkedFunction] = field(default_factory=dict)
    bases: tuple[LinkedClass, ...] = ()
    subclasses: list[LinkedClass] = field(default_factory=list)

    @property
    def qualified(self) -> str:
        """The dotted name from the root."""
        return f"{self.module.name}.{self.facts.qualname}"

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
        The module; the bases of its classes are filled in once all modules are known.
    """
    module = Module(path, relative, module_name(relative), facts)
    module.functions = tuple(
        LinkedFunction(module, function, i) for i, function in enumerate(facts.functions)
    )
    module.classes = tuple(LinkedClass(module, class_) for class_ in facts.classes)
    for class_ in module.classes:
        class_.methods = {name: module.functions[index] for name, index in class_.facts.methods}
        if class_.facts.parent == 0 and "." not in class_.facts.qualname:
            module.top_classes[class_.facts.name] = class_
    for function in module.functions[1:]:
        if function.facts.owner >= 0:
            function.owner = module.classes[function.facts.owner]
        elif function.facts.parent == 0:
            module.top_functions[function.facts.name] = function
        else:
            module.functions[function.facts.parent].nested[function.facts.name] = function
    module.imports = {row.local: row for row in facts.imports if row.name != "*"}
    module.stars = tuple(row for row in facts.imports if row.name == "*")
    return module


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
    that name and it lies nearest to the importing file.
    """

    def __init__(self, modules: Iterable[Module], also: Mapping[str, Module | None]) -> None:
        """Index the modules of a project, under further relative paths too."""
        self.modules = tuple(modules)
        for order, function in enumerate(f for module in self.modules for f in module.functions):
            function.order = order
        linked = {module_name(path): module for path, module in also.items() if module is not None}
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
            if beside is not None and beside is not importer:
                return beside
        found = self._by_name.get(name)
        if found is not None and found is not importer:
            return found
        candidates = self._by_short_name.get(name) or self._beside(name, importer)
        return max(candidates, key=lambda module: _common(module.relative, importer.relative), default=None)

    def _beside(self, name: str, importer: Module) -> list[Module]:
        """Find files outside of packages that lie in a folder around the importing file."""
        if "." in name or name in sys.stdlib_module_names:
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
    count = 0
    for left, right in zip(one.split("/"), two.split("/"), strict=False):
        if left != right:
            break
        count += 1
    return count
