"""Rank checks and barriers that the project defines, for files that do not import them yet."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.analysis.dataflow.rank_partition import is_first
from fsrace_lint.engine.query import lazy
from fsrace_lint.program.symbols import as_function
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.before_init import BeforeInit
    from fsrace_lint.program.modules import LinkedFunction, Module

_WAITING: Final = ("barrier", "rank", "world")
"""The kinds of the library calls that a plain barrier consists of."""
_DEEPEST: Final = 3


class _Imported(NamedTuple):
    """A function, and the module and the name under which the project imports it."""

    module: str
    name: str
    function: LinkedFunction


class ProjectIdioms:
    """Finds functions of the project that check for rank 0 or wait for all ranks.

    They are found by what they do. Only functions that some file imports absolutely are offered, the one
    that most files import first.
    """

    def __init__(self, entry_states: EntryStates, groups: BeforeInit) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.groups = groups

    def tests(self, call_site: CallSite) -> Iterator[tuple[str, str]]:
        """Yield the module and the name of each rank check that the file of a call can import."""
        if not self.groups.is_too_early(call_site):
            yield from self._usable(self._tests, call_site)

    def barriers(self, call_site: CallSite) -> Iterator[tuple[str, str]]:
        """Yield the module and the name of each barrier that the file of a call can import."""
        if not self.groups.is_too_early(call_site):
            yield from self._usable(self._barriers, call_site)

    @lazy
    def _tests(self) -> tuple[_Imported, ...]:
        return self._doing(self._is_test)

    @lazy
    def _barriers(self) -> tuple[_Imported, ...]:
        return self._doing(self._is_plain_barrier)

    def _doing(self, does: Callable[[LinkedFunction], bool]) -> tuple[_Imported, ...]:
        return tuple(each for each in self._imported if does(each.function))

    @lazy
    def _imported(self) -> tuple[_Imported, ...]:
        """The functions without required parameters that files import absolutely, most imported first."""
        counted = Counter[_Imported]()
        for module in self.flows.table.modules:
            for row in module.imports.values():
                if row.level or not row.name or row.name.startswith("_"):
                    continue
                found = self.flows.table.find(row.module, module)
                function = None if found is None else as_function(self.flows.resolver.member(found, row.name))
                if function is not None and _is_called_bare(function):
                    counted[_Imported(row.module, row.name, function)] += 1
        return tuple(sorted(counted, key=lambda each: (-counted[each], each[:2])))

    def _is_test(self, function: LinkedFunction) -> bool:
        if not any(isinstance(each, m.Return) for each in function.facts.body):
            return False
        scope = self.flows.final_environment(function.module.code)
        if scope is None or function.facts.name not in function.module.top_functions:
            return False
        call = m.Call(m.Name(function.facts.name), (), (), function.facts.span)
        return self.entry_states.rank_tests.partition(call, scope) == is_first("global")

    def _is_plain_barrier(self, function: LinkedFunction, depth: int = 0) -> bool:
        return self.entry_states.summaries.is_barrier(function) and self._only_waits(function, depth)

    def _only_waits(self, function: LinkedFunction, depth: int) -> bool:
        """Return whether a function calls nothing but barriers, and asks for ranks."""
        resolver = self.flows.resolver
        for call_site in self.flows.call_sites(function):
            entity = resolver.symbol(call_site.call.function, call_site.state.scope)
            called = resolver.type_name(entity) or "*." + last_name(call_site.call.function)
            inner = as_function(entity)
            known = inner is not None and depth < _DEEPEST and self._only_waits(inner, depth + 1)
            if not known and not self.flows.catalog.is_any(_WAITING, called):
                return False
        return True

    def _usable(self, offered: tuple[_Imported, ...], call_site: CallSite) -> Iterator[tuple[str, str]]:
        """Yield what a file can import: by a name that works there, and not in a circle."""
        importer = call_site.function.module
        tops = self._tops(importer) if offered else frozenset[str]()
        for each in offered:
            if each.module.partition(".")[0] not in tops:
                continue
            found = self.flows.table.find(each.module, importer)
            entity = None if found is None else self.flows.resolver.member(found, each.name)
            if found is None or as_function(entity) is not each.function:
                continue
            if not self._leads_to(found, importer):
                yield each.module, each.name

    def _tops(self, importer: Module) -> frozenset[str]:
        """Return the top-level packages that the files in a directory import."""
        folder = importer.relative.rpartition("/")[0]
        return frozenset(
            row.module.partition(".")[0]
            for module in self.flows.table.modules
            if module.relative.rpartition("/")[0] == folder
            for row in module.facts.imports
            if not row.level
        )

    def _leads_to(self, start: Module, goal: Module) -> bool:
        """Return whether a module imports another one, directly or through others."""
        seen, waiting = {start}, [start]
        while waiting:
            module = waiting.pop()
            for other in self._imports(module):
                if other is goal:
                    return True
                if other not in seen and not _contains(other, goal):
                    seen.add(other)
                    waiting.append(other)
        return start is goal

    def _imports(self, module: Module) -> Iterator[Module]:
        """Yield the modules of the project that run when a module is imported."""
        table = self.flows.table
        package = module.name.rpartition(".")[0]
        while package:
            around = table.exact(package)
            if around is not None:
                yield around
            package = package.rpartition(".")[0]
        for row in module.facts.imports:
            name = table.relative(row, module) if row.level else row.module
            for full in (name, f"{name}.{row.name}") if row.name else (name,):
                found = table.exact(full) if row.level else table.find(full, module)
                if found is not None:
                    yield found


def _is_called_bare(function: LinkedFunction) -> bool:
    """Return whether a function is plain and can be called without arguments."""
    facts = function.facts
    required = any(p.default is None and p.kind in {"positional", "keyword"} for p in facts.parameters)
    return function.owner is None and not required and not facts.is_generator


def _contains(package: Module, module: Module) -> bool:
    """Return whether a module is in a package: then the package is imported before."""
    return package.is_package and module.name.startswith(f"{package.name}.")
