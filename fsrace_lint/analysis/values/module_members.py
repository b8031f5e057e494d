"""Members of modules: defined, imported, re-exported, or imported with `*`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import query, recursive_query
from fsrace_lint.program.class_hierarchy import ClassHierarchy
from fsrace_lint.program.modules import LinkedClass, Module
from fsrace_lint.program.symbols import DEEPEST, ExternalName, ModuleVariable, Symbol
from fsrace_lint.syntax.ast_names import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.engine.cycles import CycleDetector
    from fsrace_lint.program.module_table import ModuleTable
    from fsrace_lint.syntax import model as m


class ModuleMembers:
    """Finds the members of the modules of a project, and links classes with their bases."""

    def __init__(
        self,
        table: ModuleTable,
        interpretation: Interpretation,
        cycles: CycleDetector,
    ) -> None:
        """Initialize the class hierarchy of the modules of `table`."""
        self.table = table
        self.interpretation = interpretation
        self.cycles = cycles
        self.budget = DepthBudget(DEEPEST, cycles)
        self.dependencies = table.dependencies
        self.hierarchy = ClassHierarchy(self, self.dependencies)
        for module in table.modules:
            module.family = self.hierarchy

    @query
    def importers(self, module: Module) -> tuple[Module, ...]:
        """Return the modules of the project that import a module."""
        return tuple(one for one in self.table.naming(module) if module in self._imports(one))

    @query
    def _imports(self, module: Module) -> frozenset[Module]:
        return frozenset(self._find_imports(module))

    def _find_imports(self, module: Module) -> Iterator[Module]:
        for row in module.facts.imports:
            dotted = self.table.relative(row, module) if row.level else row.module
            for name in (dotted, f"{dotted}.{row.name}"):
                target = self.table.exact(name) if row.level else self.table.find(name, module)
                if target is not None and target is not module:
                    yield target

    def member(self, module: Module, name: str, depth: int = 0) -> Symbol | None:
        """Return the symbol that `module.name` denotes."""
        if self.dependencies is not None:
            self.dependencies.file(module.relative)
        if self.budget.exhausted(depth):
            return None
        if name in module.top_functions:
            return module.top_functions[name]
        if name in module.top_classes:
            return module.top_classes[name]
        return self._other_member(module, name, depth)

    @recursive_query(beyond=None)
    def _other_member(self, module: Module, name: str, depth: int) -> Symbol | None:
        """Return a member that is imported, a submodule, or a variable."""
        if name in module.imports:
            return self._imported(module.imports[name], module, depth + 1)
        submodule = (
            self.table.exact(f"{module.name}.{name}") if module.is_package or not module.name else None
        )
        if submodule is not None:
            return submodule
        final = self.interpretation.final_environment(module.code)
        if final is not None and final.get(name) is not None:
            return ModuleVariable(module, name)
        return self._starred(module, name, depth + 1)

    def bases_of(self, class_: LinkedClass) -> Iterator[LinkedClass]:
        """Yield the bases of a class that are in the project, in source order."""
        for base in class_.facts.bases:
            name = dotted(base)
            entity = None if name is None else self._dotted_member(class_.module, name)
            if isinstance(entity, LinkedClass) and entity is not class_:
                yield entity

    def subclasses_of(self, class_: LinkedClass) -> Iterator[LinkedClass]:
        """Yield the direct subclasses of a class, in the order of the project."""
        for module in self.table.deriving(class_.facts.name):
            for heir in module.classes:
                yield from (heir for base in heir.bases if base is class_)

    def _dotted_member(self, module: Module, chain: str) -> Symbol | None:
        first, *rest = chain.split(".")
        entity: Symbol | None
        if first in module.top_classes:
            entity = module.top_classes[first]
        elif first in module.imports:
            entity = self._imported(module.imports[first], module, 0, follow_variables=False)
        else:
            return None
        for name in rest:
            if isinstance(entity, Module):
                entity = entity.top_classes.get(name) or (
                    self._imported(entity.imports[name], entity, 0, follow_variables=False)
                    if name in entity.imports
                    else self.table.exact(f"{entity.name}.{name}")
                )
            else:
                return None
        return entity

    def _imported(
        self, row: m.Import, importer: Module, depth: int, *, follow_variables: bool = True
    ) -> Symbol | None:
        dotted = self.table.relative(row, importer) if row.level else row.module
        module = self.table.exact(dotted) if row.level else self.table.find(dotted, importer)
        if row.name is None:
            return module or ExternalName(dotted)
        if module is None or module is importer:
            submodule = self.table.find(f"{dotted}.{row.name}", importer)
            return submodule or ExternalName(f"{dotted}.{row.name}")
        if not follow_variables:
            return module.top_classes.get(row.name) or self._reexported(module, row.name, depth)
        return self.member(module, row.name, depth + 1) or ExternalName(f"{dotted}.{row.name}")

    def _reexported(self, module: Module, name: str, depth: int) -> Symbol | None:
        if self.budget.exhausted(depth):
            return None
        if name in module.imports:
            return self._imported(module.imports[name], module, depth + 1, follow_variables=False)
        return self.table.exact(f"{module.name}.{name}")

    def _starred(self, module: Module, name: str, depth: int) -> Symbol | None:
        if self.budget.exhausted(depth) or name.startswith("_"):
            return None
        for row in module.stars:
            dotted = self.table.relative(row, module) if row.level else row.module
            source = self.table.exact(dotted) if row.level else self.table.find(dotted, module)
            entity = None if source is None or source is module else self.member(source, name, depth + 1)
            if entity is not None:
                return entity
        return None
