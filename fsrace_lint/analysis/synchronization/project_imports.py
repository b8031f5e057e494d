"""How a file can import a function of the project, without a circular import or a new dependency."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.modules import LinkedClass, Module
from fsrace_lint.program.symbols import as_function

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.program.symbols import Symbol
    from fsrace_lint.syntax import model as m

Form = tuple[str, str]
"""The module and the name of a function as an import spells them; the module may begin with dots."""


class Offered(NamedTuple):
    """A function, the module that provides it, its name there, and how files name the module, if they do."""

    module: Module
    name: str
    function: LinkedFunction | LinkedClass
    spelled: str


class ProjectImports:
    """Finds the functions of the project that files import, and how another file can import them."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project."""
        self.table = flows.table
        self.resolver = flows.resolver

    @lazy
    def functions(self) -> tuple[Offered, ...]:
        """The functions that files import, or call as attributes of a module; most imported first."""
        counted = Counter[tuple[Module, str, "LinkedFunction | LinkedClass"]]()
        spelled = dict[Module, Counter[str]]()
        for importer in self.table.modules:
            for module, name, function, text in self.imported_by(importer):
                counted[module, name, function] += 1
                spelled.setdefault(module, Counter()).update([text] if text else [])
        ordered = sorted(counted, key=lambda key: (-counted[key], key[0].name, key[1]))
        texts = {module: _most_common(found) for module, found in spelled.items()}
        return tuple(Offered(*key, texts[key[0]]) for key in ordered if not key[1].startswith("_"))

    @query
    def imported_by(self, importer: Module) -> tuple[Offered, ...]:
        """The functions that a file imports, or calls as attributes of a module."""
        called = {name for function in importer.facts.functions for name in function.called}
        rows = ((row, self.module_of(row, importer)) for row in importer.imports.values())
        return tuple(
            each for row, found in rows if found is not None for each in self._of(row, found, called)
        )

    def _of(self, row: m.Import, found: Module, called: set[str]) -> Iterator[Offered]:
        entity = found if row.name is None else self.resolver.member(found, row.name)
        text = "" if row.level else row.module
        if isinstance(entity, Module):
            text = f"{text}.{row.name}" if text and row.name else text
            for name, function in entity.top_functions.items():
                if name in called:
                    yield Offered(entity, name, function, text)
        elif (named := as_function(entity)) is not None:
            yield Offered(found, row.name or "", named, text)

    def module_of(self, row: m.Import, importer: Module) -> Module | None:
        """Return the module of the project that an import names, or from which it takes a name."""
        if row.level:
            return self.table.exact(self.table.relative(row, importer))
        return self.table.find(row.module, importer)

    def named(self, name: str, importer: Module) -> Offered | None:
        """Return the function or the class of the project that a dotted name denotes in a file, or None."""
        module, _, last = name.rpartition(".")
        found = self.table.find(module, importer)
        entity = None if found is None else _called(self.resolver.member(found, last))
        return None if found is None or entity is None else Offered(found, last, entity, module)

    def forms(self, offered: Offered, importer: Module, *, is_chosen: bool = False) -> Iterator[Form]:
        """Yield the imports by which a file can use a function: those that it has, and then new ones.

        Args:
            offered: The function.
            importer: The file.
            is_chosen: Whether the user chose the function, so that it may need other libraries.
        """
        yield from (form for form in self._present(offered, importer))
        if offered.module is importer or self._leads_to(offered.module, importer):
            return
        if not is_chosen and not self._needed(offered.module) <= self._around(importer, offered.module):
            return
        relative = self._relative(offered.module, importer)
        absolute = self._absolute(offered, importer, is_chosen=is_chosen)
        found = (relative, absolute) if self._is_relative(importer) else (absolute,)
        yield from ((module, offered.name) for module in found if module)

    def _present(self, offered: Offered, importer: Module) -> Iterator[Form]:
        """Yield the imports of a file that already bind the function, or its module."""
        for row in importer.imports.values():
            found = self.module_of(row, importer) if row.name is not None else None
            if found is None or row.name is None:
                continue
            entity = self.resolver.member(found, row.name)
            text = "." * row.level + row.module
            if _called(entity) is offered.function:
                yield text, row.name
            elif entity is offered.module:
                yield text + row.name if text.endswith(".") else f"{text}.{row.name}", offered.name

    def _is_relative(self, importer: Module) -> bool:
        """Return whether a file imports from its project relatively, or else the files next to it do."""
        own = self._own_levels([importer])
        if not own and not importer.facts.is_script:
            own = self._own_levels(self._neighbors(importer))
        return sum(map(bool, own)) * 2 > len(own)

    def _own_levels(self, modules: Sequence[Module]) -> list[int]:
        return [
            row.level
            for module in modules
            for row in module.facts.imports
            if row.level or self.module_of(row, module) is not None
        ]

    def _neighbors(self, module: Module) -> list[Module]:
        folder = _folder(module)
        return [other for other in self.table.modules if _folder(other) == folder]

    def _relative(self, module: Module, importer: Module) -> str | None:
        """Return the module as a relative import names it, or None outside of a package."""
        base = importer.name.split(".") if importer.is_package else importer.name.split(".")[:-1]
        parts = module.name.split(".")
        common = sum(1 for length in range(len(base)) if base[: length + 1] == parts[: length + 1])
        level = len(base) - common + 1
        package = self.table.exact(".".join(base[:common]))
        is_inside = common > 0 and package is not None and package.is_package
        if is_inside or any(row.level >= level for row in importer.facts.imports):
            return "." * level + ".".join(parts[common:])
        return None

    def _absolute(self, offered: Offered, importer: Module, *, is_chosen: bool) -> str | None:
        """Return the module as an absolute import names it, or None if no file of the directory does so."""
        parts = offered.module.name.split(".")
        shorter = [".".join(parts[first:]) for first in range(len(parts))]
        tops = {
            row.module.partition(".")[0]
            for module in self._neighbors(importer)
            for row in module.facts.imports
            if not row.level
        }
        for text in (offered.spelled, *shorter):
            found = self.table.find(text, importer) if text else None
            entity = None if found is None else self.resolver.member(found, offered.name)
            if (is_chosen or text.partition(".")[0] in tops) and _called(entity) is offered.function:
                return text
        return None

    def _leads_to(self, start: Module, goal: Module) -> bool:
        """Return whether a module imports another one, directly or through others."""
        return goal in self._reached(start, goal)

    def _reached(self, start: Module, goal: Module | None = None) -> set[Module]:
        """Return the modules that run when a module is imported, except for packages around the goal."""
        seen, waiting = {start}, [start]
        while waiting:
            for other in self._run_by(waiting.pop()):
                if other not in seen and (goal is None or not _contains(other, goal)):
                    seen.add(other)
                    waiting.append(other)
        return seen

    @query
    def _run_by(self, module: Module) -> tuple[Module, ...]:
        """Return the modules of the project that a module runs itself when it is imported."""
        return tuple(dict.fromkeys(self._each_run_by(module)))

    def _each_run_by(self, module: Module) -> Iterator[Module]:
        package = module.name.rpartition(".")[0]
        while package:
            around = self.table.exact(package)
            if around is not None:
                yield around
            package = package.rpartition(".")[0]
        for row in module.facts.imports:
            if row.later:
                continue
            name = self.table.relative(row, module) if row.level else row.module
            for full in (name, f"{name}.{row.name}") if row.name else (name,):
                found = self.table.exact(full) if row.level else self.table.find(full, module)
                if found is not None:
                    yield found

    @query
    def _needed(self, module: Module) -> frozenset[str]:
        """Return the libraries without which a module cannot be imported."""
        return frozenset(name for other in self._reached(module) for name in self._libraries(other))

    @query
    def _around(self, importer: Module, other: Module) -> frozenset[str]:
        """Return the libraries that a file needs, or that the files next to it import, except for one."""
        beside = (each for each in self._neighbors(importer) if each is not other)
        return self._needed(importer).union(*map(self._libraries, beside))

    def _libraries(self, module: Module) -> Iterator[str]:
        for row in module.facts.imports:
            top = row.module.partition(".")[0]
            is_needed = not (row.level or row.later or row.tried)
            if is_needed and top not in sys.stdlib_module_names and self.module_of(row, module) is None:
                yield top


def _called(entity: Symbol | None) -> LinkedFunction | LinkedClass | None:
    """Return the function or the class that a call of a symbol runs."""
    return entity if isinstance(entity, LinkedClass) else as_function(entity)


def _most_common(found: Counter[str]) -> str:
    return min(found, key=lambda text: (-found[text], text), default="")


def _folder(module: Module) -> str:
    return module.relative.rpartition("/")[0]


def _contains(package: Module, module: Module) -> bool:
    """Return whether a module is in a package: then the package is imported before."""
    return package.is_package and module.name.startswith(f"{package.name}.")
