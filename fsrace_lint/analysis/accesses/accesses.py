"""Find the filesystem acts of functions, also those a call leads to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.access_context import AccessContexts, LazyAccessContext
from fsrace_lint.analysis.accesses.effects import Effects
from fsrace_lint.analysis.accesses.exclusive_claims import ExclusiveClaims
from fsrace_lint.analysis.accesses.existence_checks import ExistenceChecks
from fsrace_lint.analysis.accesses.http_downloads import HttpDownloads
from fsrace_lint.analysis.accesses.model import ASKING, Access
from fsrace_lint.analysis.callgraph.concurrency_evidence import ConcurrencyEvidence
from fsrace_lint.analysis.callgraph.reaching_functions import reaching_functions
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.dataflow.process_set import TOP, runs
from fsrace_lint.analysis.paths.callee_paths import instantiate_at_call, is_parameterized
from fsrace_lint.analysis.paths.storage import Storage
from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import lazy, query, recursive_query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Operation
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.callgraph.reaching_functions import ReachingFunctions
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_CALLERS_DEPTH: Final = 4
_UNKNOWN_STORAGE: Final = Storage()
_NOT_DONE: Final = frozenset({"NotImplementedError", "type", "self", "__class__", "__name__", "str"})
"""What is mentioned in methods that are there to be overridden."""
_OF_THE_KERNEL: Final = re.compile(r"/(proc|sys|dev(?!/shm))/")
"""Where each process sees itself, its machine or its container, or nothing is kept."""
_NONE: Final = spell(m.Constant(None))


class Accesses:
    """The sites of a project's functions, each function's found once.

    A site is *open* where its path depends on a parameter and the callers are
    known: what path it is, and who writes it, is decided where they call.
    """

    def __init__(self, entry_states: EntryStates, storage: Storage = _UNKNOWN_STORAGE) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.entry_states = entry_states
        self.flows = flows = entry_states.flows
        self.storage = storage
        self.evidence = ConcurrencyEvidence(entry_states)
        self.effects = Effects(flows.resolver, flows.catalog, flows.relevance)
        self.tests = ExistenceChecks(entry_states, self.effects)
        self._responses = HttpDownloads(entry_states)
        self.contexts = AccessContexts(self.evidence, storage)
        self._claims = ExclusiveClaims(entry_states.paths)
        self.budget = DepthBudget(_CALLERS_DEPTH + 1, CycleDetector())

    @query
    def direct(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Give the sites that stand in a function, with what all its callers bring."""
        return tuple(self._find(function))

    @query
    def all_accesses(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Give the sites of a function and the open ones that its calls lead to, in the order of the code."""
        found = (*self.direct(function), *self._led_to(function, 0))
        return tuple(sorted(found, key=lambda access: access.span))

    @query
    def instantiated(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Give the sites whose path is decided in a function: its own, and those that its calls lead to."""
        decided = (access for access in self.all_accesses(function) if not self.is_parametric(access))
        return tuple(access for access in decided if not self._is_no_file(access.path))

    def rank_selected(self, function: LinkedFunction) -> Iterator[Access]:
        """Give the sites of a function where it chooses their processes, the others as `exposed` does."""
        for access in self.direct(function):
            if self.is_parametric(access) and runs(access.own) is access.runs:
                yield access
        acting = self.contexts.acting
        for access in self.instantiated(function):
            if (
                access.call_site is access.leaf_call
                or runs(acting(access.operation, access.leaf_call)) is not access.runs
            ):
                yield access

    def arrival(self, rename: Access) -> Access | None:
        """Give a rename as it looks from the path that it makes."""
        target, scope = rename.operation.target, rename.leaf_call.state.scope
        if target is None:
            return None
        operation = replace(rename.operation, path=target)
        path = self._brought_up(self.entry_states.paths.normalize(target, scope), rename)
        around, call_site = self.contexts, rename.call_site
        return self._access_of(
            LazyAccessContext(around, operation, call_site, rename.leaf_call, path, spell(target))
        )

    def _brought_up(self, path: AbstractPath | None, access: Access) -> AbstractPath | None:
        """Give a path of the function that does it as it looks from where a site is seen."""
        if access.callee_access is None:
            return path
        return self.substituted(
            self._brought_up(path, access.callee_access),
            access.call_site,
            access.callee_access.call_site.function,
        )

    def _is_no_file(self, path: AbstractPath | None) -> bool:
        """Tell whether callers hand over something that is no file: None, or a null device, say."""
        texts = () if path is None else [symbol.text for symbol in path.variables()]
        return any(text == _NONE or self.flows.catalog.exact("sink", text) is not None for text in texts)

    def may_reach_access(self, function: LinkedFunction) -> bool:
        """Tell whether there can be sites in a function, or at its calls."""
        if function in self._leading.functions:
            return True
        return self.flows.relevance.may_use(function, self.effects.names)

    def _find(self, function: LinkedFunction) -> Iterator[Access]:
        if not self.flows.relevance.may_use(function, self.effects.names):
            return
        found = (self._site(call_site) for call_site in self.flows.call_sites(function))
        for access in self._claims.of(access for access in found if access is not None):
            yield self._settled(access)

    def _site(self, call_site: CallSite) -> Access | None:
        operation = self.operation(call_site)
        return (
            None
            if operation is None or operation.op in ASKING
            else self.access_at(operation, call_site, call_site.state.scope)
        )

    def operation(self, call_site: CallSite) -> Operation | None:
        """Give what a call does to the filesystem; None where that is nothing, or nothing that stays."""
        operation = self.effects.operation(call_site.call, call_site.state.scope)
        if operation is None or self._is_sink(operation.path, call_site.state.scope):
            return None
        return (
            replace(operation, op="download")
            if operation.op == "write" and self._responses.fills(call_site)
            else operation
        )

    def access_at(self, operation: Operation, call_site: CallSite, scope: Environment) -> Access:
        """Give what is known of an act.

        Args:
            operation: The act.
            call_site: The call that does it.
            scope: The names with which its path is read.
        """
        path = self.entry_states.paths.normalize(operation.path, scope)
        return self._access_of(
            LazyAccessContext(self.contexts, operation, call_site, call_site, path, spell(operation.path))
        )

    def access_with_processes(self, call_site: CallSite, operation: Operation, scope: Environment) -> Access:
        """Give the site of an act whose path is read in `scope`, as it looks from a call."""
        path = self.entry_states.paths.normalize(operation.path, scope)
        around, processes = self.contexts, self.entry_states.processes(call_site)
        seen = LazyAccessContext(
            around, operation, call_site, call_site, path, spell(operation.path), processes=processes
        )
        return self._access_of(seen)

    def access_with_path(
        self,
        operation: Operation,
        call_site: CallSite,
        origin: CallSite,
        path: AbstractPath | None,
        processes: ProcessSet,
    ) -> Access:
        """Give the site of an act as it looks from a call, with the path that it has there."""
        spelled = spell(operation.path) if call_site is origin or path is None else path.text
        around = self.contexts
        return self._access_of(
            LazyAccessContext(around, operation, call_site, origin, path, spelled, processes=processes)
        )

    def is_settled_before(self, call_site: CallSite) -> bool:
        """Tell whether all processes have met before a call, and none has changed anything since."""
        settled = False
        for earlier in self.flows.call_sites_before(call_site):
            if self.evidence.synchronizes(earlier):
                settled = True
            elif earlier.state.processes != TOP:
                operation = self.effects.operation(earlier.call, earlier.state.scope)
                settled = settled and (operation is None or operation.op in ASKING)
        return settled

    def _access_of(self, context: LazyAccessContext) -> Access:
        """Give the site of an act as it looks from a call; what callers bring is found later."""
        operation, call_site = context.operation, context.call_site
        access = Access(
            operation,
            call_site,
            context.leaf_call,
            context.path,
            context.path_source,
            context,
            callee_access=context.callee_access,
        )
        cached = operation.op == "download" and self.tests.wanting(access) is not None
        return replace(access, fixed_here=True) if cached else access

    def _is_sink(self, path: m.Expr, scope: Environment) -> bool:
        """Tell whether what is written to is no path: a device, a buffer, a file opened before."""
        first = path.parts[0] if isinstance(path, m.Format) and path.parts else path
        text = first.value if isinstance(first, m.Constant) and isinstance(first.value, str) else ""
        if _OF_THE_KERNEL.match(text) is not None:
            return True
        resolver = self.flows.resolver
        name = resolver.type_name(resolver.symbol(path, scope))
        return name is not None and self.flows.catalog.exact("sink", name) is not None

    def is_parametric(self, access: Access) -> bool:
        """Tell whether the callers of its function decide the path of a site, and who writes it."""
        return not access.fixed_here and self._depends_on_callers(access)

    @lazy
    def _leading(self) -> ReachingFunctions:
        return reaching_functions(self.entry_states, ("effect", "program"), _CALLERS_DEPTH + 1)

    def _settled(self, access: Access) -> Access:
        """Judge a site where it stands if it is what it is whoever calls.

        Its file is named right there, and every caller brings several processes and a path
        that they share; or its processes are tested there, and no caller brings a path of
        its own. Not so a download: its caller may test whether it is there.
        """
        function = access.call_site.function
        names_the_file = access.path is not None and access.path.spells_its_last_part
        tells_processes = access.call_site.state.processes != TOP
        if access.op == "download" or not (names_the_file or tells_processes):
            return access
        if not self._depends_on_callers(access) or not access.is_contended:
            return access
        edges = self.entry_states.callers(function)
        if self.entry_states.ways_in(function) != edges:
            return access
        certain = False
        for edge in edges:
            path = self.substituted(access.path, edge.call_site, function)
            private, sure = self.contexts.ownership.of(path, edge.call_site.function)
            unknown = (path is None or path.is_part) and not tells_processes
            if unknown or private or self.entry_states.protection.locked(edge.call_site):
                return access
            certain = certain or sure
        return replace(access, fixed_here=True, callers=tuple(edge.call_site for edge in edges), sure=certain)

    def _depends_on_callers(self, access: Access) -> bool:
        function = access.call_site.function
        if access.path is None or self._saves_for_all(function):
            return False
        if not is_parameterized(self.entry_states.paths, access.path, function):
            return False
        return self.entry_states.is_only_called(function)

    @recursive_query(beyond=())
    def _opened(self, function: LinkedFunction, depth: int) -> tuple[Access, ...]:
        """The open sites of a function, its own and those that its calls lead to."""
        found = (*self.direct(function), *self._led_to(function, depth))
        return tuple(access for access in found if self.is_parametric(access))

    def _led_to(self, function: LinkedFunction, depth: int) -> Iterator[Access]:
        """Give the open sites of the functions that a function calls, as they look from the call."""
        if function not in self._leading.functions:
            return
        for call_site in self.flows.call_sites(function):
            if last_name(call_site.call.function) not in self._leading.names:
                continue
            named = self.flows.resolver.callee(call_site.call, call_site.state.scope)
            if named is None or named is function or self._saves_for_all(named):
                continue
            for callee in self._meant(named):
                for access in self._opened(callee, depth + 1):
                    if not is_infeasible(call_site, callee, access.call_site.state):
                        yield self.instantiate_at(call_site, callee, access)

    def _saves_for_all(self, function: LinkedFunction) -> bool:
        """Tell whether every process must call a function, which decides by itself who writes."""
        return self.flows.catalog.exact("collective-saver", function.qualified) is not None

    def _meant(self, named: LinkedFunction) -> tuple[LinkedFunction, ...]:
        """Give the function that a call names, and for a method that does nothing what stands in for it."""
        if named.owner is None or not _NOT_DONE.issuperset(named.facts.referenced_names):
            return (named,)
        found = (class_.methods.get(named.facts.name) for class_ in named.owner.descendants())
        others = {method for method in found if method is not None and method is not named}
        return (named, *others) if len(others) == 1 else (named,)

    def instantiate_at(self, call_site: CallSite, callee: LinkedFunction, access: Access) -> Access:
        """Give a site of a function as it looks from a call of it."""
        path = self.substituted(access.path, call_site, callee)
        spelled = access.path_source if path is None else path.text
        around, operation = self.contexts, access.operation
        judged = self._access_of(
            LazyAccessContext(
                around, operation, call_site, access.leaf_call, path, spelled, callee_access=access
            )
        )
        return judged if access.claimed_by is None else replace(judged, claimed_by=access.claimed_by)

    def substituted(
        self, path: AbstractPath | None, call_site: CallSite, callee: LinkedFunction
    ) -> AbstractPath | None:
        """Give a path of a function as it looks from a call of it: with what is passed for its parameters."""
        return instantiate_at_call(
            self.entry_states.paths, path, call_site.call, call_site.state.scope, callee
        )
