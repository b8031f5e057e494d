"""What names mean, with the files that this depends on.

All ways lead from one file to another one through the table of the modules. Who looks there is noted, and
so is what was looked at for whatever is remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fsrace_lint.analysis.program.class_hierarchy import ClassHierarchy
from fsrace_lint.analysis.program.imports import ModuleTable
from fsrace_lint.analysis.values.resolve import Resolver
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.analysis.program.class_hierarchy import ClassLinks
    from fsrace_lint.analysis.program.modules import LinkedClass, LinkedFunction, Module
    from fsrace_lint.analysis.program.symbols import Symbol
    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.catalog import Catalog
    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.engine.name_index import NameIndex
    from fsrace_lint.engine.query_cache import CycleDetector

Answer = TypeVar("Answer")


class TrackedTable(ModuleTable):
    """The files of a project, and who looks at which of them."""

    def __init__(
        self,
        modules: Iterable[Module],
        also: Mapping[str, Module | None],
        libraries: Container[str],
        heads: NameIndex | None,
        dependencies: Dependencies,
    ) -> None:
        """Index the modules as the other does; `dependencies` notes what is looked at."""
        super().__init__(modules, also, libraries, heads)
        self._dependencies = dependencies

    def find(self, name: str, importer: Module) -> Module | None:
        """Find the module an absolute import means, or None where it is not of the project."""
        return self._looked_at(name, super().find(name, importer))

    def exact(self, name: str) -> Module | None:
        """Find a module by its name from the root."""
        return self._looked_at(name, super().exact(name))

    def _looked_at(self, name: str, found: Module | None) -> Module | None:
        self._dependencies.searches.modules.add(name)
        if found is not None:
            self._dependencies.on(found.position)
        return found

    def classes_named(self, name: str) -> tuple[LinkedClass, ...]:
        """Give the classes of a name that stand in no function and no other class."""
        self._dependencies.searches.heads["classes"].add(name)
        found = super().classes_named(name)
        for class_ in found:
            self._dependencies.on(class_.module.position)
        return found

    def deriving(self, name: str) -> list[Module]:
        """Give the modules in which a class may have a base that has a name where it is defined."""
        names = self.bound_as(name)
        self._dependencies.searches.heads["renamed"] |= names
        self._dependencies.searches.heads["bases"] |= names
        found = super().deriving(name)
        for module in found:
            self._dependencies.on(module.position)
        return found


class _TrackedKinship(ClassHierarchy):
    """How classes are related, and which files that depends on."""

    def __init__(self, links: ClassLinks, dependencies: Dependencies) -> None:
        super().__init__(links)
        self._dependencies = dependencies
        self._files: tuple[dict[LinkedClass, int], ...] = ({}, {}, {}, {}, {})

    def _noted(self, kind: int, class_: LinkedClass, find: Callable[[], Answer]) -> Answer:
        dependencies = self._dependencies
        return dependencies.of(self._files[kind], class_, lambda: dependencies.in_outline(find))

    def bases(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        return self._noted(0, class_, lambda: ClassHierarchy.bases(self, class_))

    def subclasses(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        return self._noted(1, class_, lambda: ClassHierarchy.subclasses(self, class_))

    def ancestors(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        return self._noted(2, class_, lambda: ClassHierarchy.ancestors(self, class_))

    def descendants(self, class_: LinkedClass) -> dict[LinkedClass, None]:
        return self._noted(3, class_, lambda: ClassHierarchy.descendants(self, class_))

    def relatives(self, class_: LinkedClass) -> tuple[LinkedClass, ...]:
        return self._noted(4, class_, lambda: ClassHierarchy.relatives(self, class_))

    def method(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        return self._looked_at(super().method(class_, name))

    def inherited(self, class_: LinkedClass, name: str) -> LinkedFunction | None:
        return self._looked_at(super().inherited(class_, name))

    def _looked_at(self, found: LinkedFunction | None) -> LinkedFunction | None:
        if found is not None:
            self._dependencies.on(found.module.position)
        return found


class TrackedResolver(Resolver):
    """Resolves expressions, and notes on which files the answers depend."""

    def __init__(
        self,
        table: ModuleTable,
        catalog: Catalog,
        interpretation: Interpretation,
        cycles: CycleDetector,
        dependencies: Dependencies,
    ) -> None:
        """Prepare for a project, as the other does; `dependencies` notes what is looked at."""
        super().__init__(table, catalog, interpretation, cycles, dependencies)
        self._dependencies, self._of = dependencies, dependencies.of
        self._files_of_entities: dict[tuple[int, Environment], int] = {}
        self._files_of_values: dict[tuple[LinkedClass, str], int] = {}
        self._files_of_names: dict[LinkedClass, int] = {}
        self.kinship = _TrackedKinship(self, dependencies)
        self.relate()

    def symbol(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Symbol | None:
        """Find what an expression denotes; only what is asked for first is remembered."""
        if depth or isinstance(expr, m.Name):
            return super().symbol(expr, scope, depth)
        key, before = (id(expr), scope), len(self.known)
        found = self._of(self._files_of_entities, key, lambda: Resolver.symbol(self, expr, scope))
        if len(self.known) < before:  # some of the answers were forgotten
            for each in self._files_of_entities.keys() - self.known.keys():
                del self._files_of_entities[each]
        return found

    def attribute_values(self, class_: LinkedClass, name: str) -> list[Binding]:
        """Give what a class and its relatives bind `self.name` to, in their bodies and methods."""
        for relative in class_.relatives:
            if relative.may_set(name) or any(relative.binding(name)):
                self._dependencies.on(relative.module.position)
        key = class_, name
        return self._of(self._files_of_values, key, lambda: Resolver.attribute_values(self, class_, name))

    def member(self, module: Module, name: str, depth: int = 0) -> Symbol | None:
        """Find what `module.name` denotes."""
        self._dependencies.on(module.position)
        return super().member(module, name, depth)

    def _known_as(self, class_: LinkedClass, depth: int) -> tuple[str, ...]:
        find = super()._known_as
        return self._of(self._files_of_names, class_, lambda: find(class_, depth))
