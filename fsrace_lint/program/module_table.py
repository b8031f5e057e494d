"""Lookup of the modules of a project by the names that imports use."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import module_name
from fsrace_lint.program.name_index import NameIndex
from fsrace_lint.syntax.name_index_entry import HERE

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping

    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction, Module
    from fsrace_lint.program.name_index import Field
    from fsrace_lint.syntax import model as m


class ModuleTable:
    """The modules of a project, found by the names that import statements use.

    A module is found by multiple names:

    * its name relative to the project root;
    * its name relative to the directory above its topmost package;
    * its bare name, from files in the same directory, as scripts import their neighbors;
    * its bare name, from other files, if no module has that name and it is the nearest such file. This is for
      directories that are added to the path at run time.

    The name of a known library does not mean a file in a package, unless a script imports it:
    `pkg/utils/torch.py` is not `torch`.
    """

    def __init__(
        self,
        modules: Iterable[Module],
        also: Mapping[str, Module | None],
        libraries: Container[str] = (),
        heads: NameIndex | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        """Index the modules of a project.

        Args:
            modules: The modules.
            also: Modules by additional relative paths.
            libraries: The names of known top-level packages.
            heads: The index of the heads of the modules, in the same order, if it exists already.
            dependencies: Records the inputs of results, if needed.
        """
        self.dependencies = dependencies
        self.modules = tuple(modules)
        self.heads = heads or NameIndex((module.relative, module.head) for module in self.modules)
        self.libraries = libraries
        for position, module in enumerate(self.modules):
            module.position = position
        linked = {module_name(path): module for path, module in also.items() if module is not None}
        self._linked = linked
        self._by_name: dict[str, Module] = {**linked, **{module.name: module for module in self.modules}}
        self._places = _places(tuple(module.relative for module in self.modules))

    def _having(self, field: Field, name: str) -> Iterator[Module]:
        return (self.modules[place] for place in self.heads.having(field, name))

    @functools.cached_property
    def renamed(self) -> dict[str, set[str]]:
        """The different local names that imports bind a name to."""
        found: dict[str, set[str]] = {}
        for module in self.modules:
            for name, local in module.head.renamed:
                found.setdefault(name, set()).add(local)
        return found

    def classes_named(self, name: str) -> tuple[LinkedClass, ...]:
        """Return the classes of a name that are outside of functions and other classes."""
        if self.dependencies is not None:
            self.dependencies.name("classes", name)
        found = (self._looked_at(module).top_classes.get(name) for module in self._having("classes", name))
        return tuple(class_ for class_ in found if class_ is not None)

    def deriving(self, name: str) -> list[Module]:
        """Return the modules that may define subclasses of a class name, under any of its imported names."""
        names = self.bound_as(name)
        if self.dependencies is not None:
            for each in names:
                self.dependencies.name("renamed", each)
                self.dependencies.name("bases", each)
        found = (self._looked_at(module) for each in names for module in self._having("bases", each))
        return self._in_order(found)

    def is_unused(self, function: LinkedFunction, importers: Collection[Module]) -> bool:
        """Return whether a file is used, but no other code names a function of it, or its class.

        A decorator can register the function or the class, a library can call a method of its subclass, and
        `import *` can make it public.

        Args:
            function: A function without callers.
            importers: The files that import its file. Without any, a framework can load the file.
        """
        owner, exports = function.owner, any("*" in module.head.imported for module in importers)
        if exports or not importers or function.facts.decorators:
            return False
        if owner is not None and owner.facts.decorators:
            return False
        own = [function] if owner is None else list(owner.methods.values())
        is_inherited = owner is not None and bool(owner.facts.bases)
        names = ("" if is_inherited else function.facts.name, "" if owner is None else owner.facts.name)
        return any(name and not name.startswith("__") and not self._is_named(name, own) for name in names)

    def is_nameless(self, module: Module) -> bool:
        """Return whether no other file of the project imports a file or has its name in a text."""
        if module.relative.endswith("__init__.py"):
            return False
        fields: tuple[Field, ...] = ("imported", "texts")
        named = (self._having(field, name) for field in fields for name in self._last_names(module))
        return all(each is module for found in named for each in found)

    def is_mentioned_near(self, module: Module, names: Iterable[str]) -> bool:
        """Return whether a file at the root, or in the same top-level directory, reads one of some names."""
        near = {"", _top_directory(module)}
        reading = (each for name in names for each in self._having("referenced_names", name))
        return any(_top_directory(each) in near for each in reading)

    def _is_named(self, name: str, own: Collection[LinkedFunction]) -> bool:
        """Return whether code other than some functions of one file names something."""
        fields: tuple[Field, ...] = ("imported", "texts")
        if any(self.heads.having(field, name) for field in fields):
            return True
        return any(
            each not in own and name in each.facts.referenced_names
            for place in self.heads.having("referenced_names", name)
            for each in self.modules[place].functions
        )

    def bound_as(self, name: str) -> set[str]:
        """Return a name, and the local names that imports bind it to."""
        names, waiting = {name}, [name]
        while waiting:
            new = self.renamed.get(waiting.pop(), set()) - names
            names |= new
            waiting += new
        return names

    def naming(self, module: Module) -> list[Module]:
        """Return the modules that may import a module."""
        names = self._last_names(module)
        if "" in names:
            return list(self.modules)
        return self._in_order(each for name in {HERE, *names} for each in self._having("imported", name))

    def _last_names(self, module: Module) -> set[str]:
        """Return the last parts of the names of a module, also through symbolic links."""
        names = (module.name, *(name for name, target in self._linked.items() if target is module))
        return {name.rpartition(".")[2] for name in names}

    @staticmethod
    def _in_order(modules: Iterable[Module]) -> list[Module]:
        return sorted(dict.fromkeys(modules), key=lambda module: module.position)

    def _looked_at(self, module: Module) -> Module:
        if self.dependencies is not None:
            self.dependencies.file(module.relative)
        return module

    @query
    def find(self, name: str, importer: Module) -> Module | None:
        """Return the module that an absolute import means, or None if it is not in the project."""
        if self.dependencies is not None:
            self.dependencies.name("module", name)
        found = self._find(name, importer)
        return None if found is None else self._looked_at(found)

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
        short = [self.modules[place] for place in self._places.by_short_name.get(name, ())]
        candidates = short or self._beside(name, importer)
        return max(
            candidates, key=lambda module: common_folders(module.relative, importer.relative), default=None
        )

    def _means_library(self, top: str, importer: Module) -> bool:
        """Return whether a bare import in a package means a known library, and not a neighboring file."""
        package = importer.name if importer.is_package else importer.name.rpartition(".")[0]
        inside = package in self._by_name and self._by_name[package].is_package
        return top in self.libraries and inside and not importer.facts.is_script

    def _beside(self, name: str, importer: Module) -> list[Module]:
        """Return the modules of a bare name that share a directory prefix with the importer."""
        if "." in name or name in sys.stdlib_module_names or name in self.libraries:
            return []
        return [
            module
            for module in (self.modules[place] for place in self._places.by_last_name.get(name, ()))
            if module is not importer
            and common_folders(module.relative, importer.relative) > 0
            and not module.is_package
        ]

    def relative(self, row: m.Import, importer: Module) -> str:
        """Return the dotted name, relative to the root, of the module that a relative import means."""
        parts = importer.name.split(".") if importer.name else []
        up = row.level - (1 if importer.is_package else 0)
        base = parts[: len(parts) - up] if up else parts
        return ".".join([*base, row.module] if row.module else base)

    def exact(self, name: str) -> Module | None:
        """Return the module with a name relative to the root, or None."""
        if self.dependencies is not None:
            self.dependencies.name("module", name)
        found = self._by_name.get(name)
        return None if found is None else self._looked_at(found)


class _Places(NamedTuple):
    """Additional names of files, mapped to their positions in the list of all files."""

    by_short_name: dict[str, list[int]]
    by_last_name: dict[str, list[int]]


@functools.lru_cache(maxsize=4)  # the daemon calls it repeatedly for the same files
def _places(relatives: tuple[str, ...]) -> _Places:
    found = _Places({}, {})
    names = [module_name(relative) for relative in relatives]
    is_package = [relative.endswith("__init__.py") for relative in relatives]
    packages = {name for name, is_one in zip(names, is_package, strict=True) if is_one}
    for place, name in enumerate(names):
        found.by_last_name.setdefault(name.rpartition(".")[2], []).append(place)
        short = _from_topmost_package(name, packages, is_package=is_package[place])
        if short != name:
            found.by_short_name.setdefault(short, []).append(place)
    return found


def _from_topmost_package(name: str, packages: set[str], *, is_package: bool) -> str:
    parent = name.rpartition(".")[0]
    above = name if is_package else parent
    while above and above in packages:
        above = above.rpartition(".")[0]
    is_outside = above == parent and not is_package
    below = name if is_outside or not above else name[len(above) + 1 :]
    return below.removeprefix("src.")


def common_folders(one: str, two: str) -> int:
    """Return the number of leading path components that two paths have in common."""
    pairs = zip(one.split("/"), two.split("/"), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _top_directory(module: Module) -> str:
    """Return the first directory of the path of a file, or an empty text for a file at the root."""
    first, slash, _ = module.relative.partition("/")
    return first if slash else ""
