"""The helpers of a project: functions that check for rank 0, or wait for all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.rank_partition import is_first
from fsrace_lint.analysis.synchronization.project_imports import ProjectImports
from fsrace_lint.analysis.synchronization.project_writers import ProjectWriters
from fsrace_lint.engine.query import query
from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.program.symbols import as_function
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fsrace_lint.analysis.accesses.effects import Effects
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.process_groups import ProcessGroups
    from fsrace_lint.analysis.synchronization.project_imports import Offered
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import Module

    OwnForm = tuple[str, str, bool]

RANK_CHECK: Final = "is-main-process"
BARRIER: Final = "barrier"
ENSURE_DIR: Final = "ensure-dir"
ATOMIC_WRITE: Final = "atomic-write"
_COORDINATING: Final = (RANK_CHECK, BARRIER)
_WAITING: Final = ("barrier", "rank", "world")
"""The kinds of the library calls that a plain barrier consists of."""
_DEEPEST: Final = 3


class ProjectIdioms:
    """Finds functions of the project that a fix can call: by the settings, and by what they do.

    Only functions that some file imports are found, the one that most files import first.
    """

    def __init__(self, entry_states: EntryStates, groups: ProcessGroups, effects: Effects) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.groups = groups
        self.imports = ProjectImports(self.flows)
        self.writers = ProjectWriters(self.flows, effects)

    def forms(self, kind: str, call_site: CallSite, chosen: str | None) -> Iterator[OwnForm]:
        """Yield how the file of a call can import a helper, best first.

        Args:
            kind: The key of the helper in the settings, such as `barrier`.
            call_site: The call.
            chosen: The dotted name that the settings give, or None.

        Yields:
            The module, which may be relative, the name, and whether it is the chosen one.
        """
        importer = call_site.function.module
        coordinates = kind in _COORDINATING
        if coordinates and self.groups.before_init.is_too_early(call_site):
            return
        if chosen is not None:
            named = self.imports.named(chosen, importer)
            if named is not None:
                yield from ((*form, True) for form in self.imports.forms(named, importer, is_chosen=True))
            elif self.flows.table.find(chosen.rpartition(".")[0], importer) is None:
                module, _, name = chosen.rpartition(".")
                yield module, name, True
        may_lack = coordinates and self.groups.may_lack(call_site)
        for offered in self._found(kind, importer):
            function = offered.function
            if may_lack and isinstance(function, LinkedFunction) and self.groups.is_needed_in(function):
                continue
            yield from ((*form, False) for form in self.imports.forms(offered, importer))

    @query
    def calls_in(self, module: Module) -> Mapping[Span, CallSite]:
        """The calls of a file by their spans; the first one if a span occurs again."""
        found: dict[Span, CallSite] = {}
        for function in module.functions:
            for call_site in self.flows.call_sites(function):
                found.setdefault(call_site.call.span, call_site)
        return found

    def exists(self, name: str) -> bool:
        """Return whether a name denotes something in the project, or in a library that a file imports."""
        module, _, last = name.rpartition(".")
        for importer in self.flows.table.modules:
            found = self.flows.table.find(module, importer)
            if found is not None and self.flows.resolver.member(found, last) is not None:
                return True
        top = module.partition(".")[0]
        rows = (row for importer in self.flows.table.modules for row in importer.facts.imports)
        return not self._is_own(top) and any(
            not row.level and row.module.partition(".")[0] == top for row in rows
        )

    def _is_own(self, top: str) -> bool:
        """Return whether a top-level name is a package or a module of the project."""
        names = (module.name.split(".") for module in self.flows.table.modules)
        return any(top in parts[:2] for parts in names)

    def _found(self, kind: str, importer: Module) -> Iterator[Offered]:
        """Yield the functions that do what a helper does; an ensure-dir function only if the file has it."""
        if kind != ENSURE_DIR:
            yield from self._doing(kind)
            return
        for each in self.imports.imported_by(importer):
            if isinstance(each.function, LinkedFunction) and self.writers.is_ensure_dir(each.function):
                yield each

    @query
    def _doing(self, kind: str) -> tuple[Offered, ...]:
        does = {
            RANK_CHECK: self._is_test,
            BARRIER: self._is_plain_barrier,
            ATOMIC_WRITE: self.writers.is_atomic_write,
        }.get(kind)
        return tuple(
            each
            for each in (self.imports.functions if does is not None else ())
            if does is not None and isinstance(each.function, LinkedFunction) and does(each.function)
        )

    def _is_test(self, function: LinkedFunction) -> bool:
        returns = any(isinstance(each, m.Return) for each in function.facts.body)
        if not returns or not _is_called_bare(function):
            return False
        scope = self.flows.final_environment(function.module.code)
        call = m.Call(m.Name(function.facts.name), (), (), function.facts.span)
        rank_tests = self.entry_states.rank_tests
        return scope is not None and rank_tests.partition(call, scope) == is_first("global")

    def _is_plain_barrier(self, function: LinkedFunction, depth: int = 0) -> bool:
        is_one = _is_called_bare(function) and self.entry_states.summaries.is_barrier(function)
        return is_one and self._only_waits(function, depth)

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


def _is_called_bare(function: LinkedFunction) -> bool:
    """Return whether a function is plain and can be called without arguments."""
    facts = function.facts
    required = any(p.default is None and p.kind in {"positional", "keyword"} for p in facts.parameters)
    return function.owner is None and not required and not facts.is_generator and not facts.is_async
