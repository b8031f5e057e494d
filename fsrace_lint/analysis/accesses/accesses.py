"""Finds the filesystem accesses of functions, including those in the functions that they call."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.access_context import AccessContexts, LazyAccessContext
from fsrace_lint.analysis.accesses.command_runners import CommandRunners
from fsrace_lint.analysis.accesses.earlier_directories import EarlierDirectories
from fsrace_lint.analysis.accesses.effects import Effects, operation_of
from fsrace_lint.analysis.accesses.empty_files import (
    left_as_markers,
    left_empty,
    writes_literals,
    writes_nothing,
)
from fsrace_lint.analysis.accesses.exclusive_claims import ExclusiveClaims
from fsrace_lint.analysis.accesses.existence_checks import ExistenceChecks
from fsrace_lint.analysis.accesses.http_downloads import HttpDownloads
from fsrace_lint.analysis.accesses.model import ASKING, Access
from fsrace_lint.analysis.callgraph.call_edges import CallEdge
from fsrace_lint.analysis.callgraph.concurrency_evidence import ConcurrencyEvidence
from fsrace_lint.analysis.callgraph.reaching_functions import reaching_functions
from fsrace_lint.analysis.dataflow.infeasible_paths import is_impossible, is_infeasible
from fsrace_lint.analysis.dataflow.process_set import TOP, runs
from fsrace_lint.analysis.paths.callee_paths import instantiate_at_call, is_parameterized
from fsrace_lint.analysis.paths.storage import Storage
from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import lazy, query, recursive_query
from fsrace_lint.program.programs import Programs
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Operation
    from fsrace_lint.analysis.callgraph.chain_constants import Calls
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.callgraph.reaching_functions import ReachingFunctions
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_CALLERS_DEPTH: Final = 4
_UNKNOWN_STORAGE: Final = Storage()
_CREATING: Final = frozenset({"mkdir", "makedirs"})
_OF_THE_KERNEL: Final = re.compile(r"/(proc|sys|dev(?!/shm))/")
"""Matches paths in kernel filesystems, which store no files or differ between processes or hosts."""
_NONE: Final = spell(m.Constant(None))


class Accesses:
    """The accesses of the functions of a project, computed once per function.

    An access is *parametric* if its path depends on a parameter and the function is called in the project.
    The callers then decide which path it is, and which processes access it.
    """

    def __init__(
        self, entry_states: EntryStates, storage: Storage = _UNKNOWN_STORAGE, programs: Programs | None = None
    ) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.entry_states = entry_states
        self.flows = flows = entry_states.flows
        self.storage = storage
        self.evidence = ConcurrencyEvidence(entry_states, programs or Programs(self.flows.table))
        self.effects = Effects(flows.resolver, flows.catalog, flows.relevance)
        self.tests = ExistenceChecks(entry_states, self.effects)
        self._runners = CommandRunners(entry_states, self.effects)
        self._responses = HttpDownloads(entry_states)
        self.contexts = AccessContexts(self.evidence, storage)
        self._claims = ExclusiveClaims(entry_states.paths)
        self._earlier = EarlierDirectories(self)
        self.budget = DepthBudget(_CALLERS_DEPTH + 1, CycleDetector())

    @query
    def direct(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Return the accesses in the code of a function."""
        return tuple(self._find(function))

    @query
    def all_accesses(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Return the accesses of a function, and the parametric ones its calls reach, in source order."""
        found = (*self.direct(function), *self._led_to(function, 0))
        return tuple(sorted(found, key=lambda access: access.span))

    @query
    def instantiated(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Return the accesses whose path is decided in a function: its own, and those its calls reach."""
        decided = (access for access in self.all_accesses(function) if not self.is_parametric(access))
        return tuple(access for access in decided if not self._is_no_file(access.path))

    def rank_selected(self, function: LinkedFunction) -> Iterator[Access]:
        """Yield accesses, each in the function that selects the processes that run it.

        A parametric access is yielded in its own function if that function selects the processes. All other
        accesses are those of `instantiated`.
        """
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

    def is_created_before(self, path: AbstractPath, call_site: CallSite) -> bool:
        """Return whether the code before a call always creates a directory, here or in all callers."""
        return self._earlier.creates(path, call_site)

    def arrival(self, rename: Access) -> Access | None:
        """Return a rename as an access to its new path, or None if the rename has none."""
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
        """Return a path of the function of the leaf call, instantiated at the call site of an access."""
        if access.callee_access is None:
            return path
        return self.substituted(
            self._brought_up(path, access.callee_access),
            access.call_site,
            access.callee_access.call_site.function,
        )

    def _is_no_file(self, path: AbstractPath | None) -> bool:
        """Return whether a caller passes something that is not a file, such as None or a null device."""
        texts = () if path is None else [symbol.text for symbol in path.variables()]
        return any(text == _NONE or self.flows.catalog.exact("sink", text) is not None for text in texts)

    def may_reach_access(self, function: LinkedFunction) -> bool:
        """Return whether a function, or a function that it calls, can access the filesystem."""
        if function in self._leading.functions:
            return True
        return self.flows.relevance.may_use(function, self.effects.names)

    def _find(self, function: LinkedFunction) -> Iterator[Access]:
        found = self._commanded(function)
        if self.flows.relevance.may_use(function, self.effects.names):
            possible = (each for each in self.flows.call_sites(function) if not is_impossible(each.state))
            found += filter(None, map(self.of_call, possible))
        for access in self._claims.of(sorted(found, key=lambda access: access.span)):
            claim = self._claim_of_callers(function) if access.op == "write" else self._earlier.of(access)
            claimed = access.claimed_by is not None or claim is None
            yield self._settled(access if claimed else replace(access, claimed_by=claim))

    @query(provisional=None)
    def _claim_of_callers(self, function: LinkedFunction) -> Access | None:
        """Return a directory that only the process creates that calls a function, or None."""
        if not self.entry_states.is_only_called(function):
            return None
        claims = [self._claim_around(edge.call_site) for edge in self.entry_states.callers(function)]
        return None if None in claims else claims[0]

    def _claim_around(self, call_site: CallSite) -> Access | None:
        """Return a directory that was found missing and created, in the branch of a call."""
        if not self.flows.relevance.may_use(call_site.function, _CREATING):
            return None
        here = call_site.state.conditions
        for made in self._created_alone(call_site.function):
            around = made.call_site.state.conditions
            if made.span < call_site.call.span and around == here[: len(around)]:
                return made
        return None

    @query(provisional=())
    def _created_alone(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Return the directories that a function finds missing and creates; all but one process fail."""
        found = (self.of_call(call_site) for call_site in self.flows.call_sites(function))
        return tuple(
            made
            for made in found
            if made is not None
            and made.op == "mkdir"
            and made.is_surely_a_path
            and made.is_shared
            and not made.tolerates("FileExistsError")
            and self.tests.wanting(made) is not None
        )

    def of_call(self, call_site: CallSite) -> Access | None:
        """Return the access that a call itself makes, or None if it changes nothing."""
        operation = self.operation(call_site)
        return (
            None
            if operation is None or operation.op in ASKING
            else self.access_at(operation, call_site, call_site.state.scope)
        )

    def operation(self, call_site: CallSite) -> Operation | None:
        """Return the operation of a call, or None if it has no effect or writes to a sink."""
        found = self.effects.operation(call_site.call, call_site.state.scope)
        operation = None if found is None else self._opened_by(found, call_site, ())
        if operation is None or self._is_sink(operation.path, call_site.state.scope):
            return None
        if operation.op != "write":
            return operation
        if operation.truncates and self._writes_nothing(call_site):
            return replace(operation, empty=True)
        return replace(operation, op="download") if self._responses.fills(call_site) else operation

    def _opened_by(self, operation: Operation, leaf: CallSite, calls: Calls) -> Operation | None:
        """Return an operation with the mode that some calls pass, or None if they only read the file."""
        if operation.mode is None:
            return operation
        modes = self.evidence.markers.constants.values(operation.mode, leaf.state.scope, calls)
        texts = [mode for mode in modes if isinstance(mode, str)]
        if not texts or len(texts) < len(modes):
            return operation
        return operation.opened_with(next((mode for mode in texts if "w" in mode), texts[0]))

    def _writes_nothing(self, call_site: CallSite) -> bool:
        """Return whether a call that truncates a file leaves it empty."""
        return writes_nothing(call_site.call) or call_site.call in self._left_empty(call_site.function)

    def is_marker(self, access: Access) -> bool:
        """Return whether an access creates a file whose existence is its only content."""
        call_site = access.leaf_call
        return (
            access.op == "create"
            or writes_literals(call_site.call)
            or call_site.call in left_as_markers(call_site.function.facts.body)
        )

    @query
    def _left_empty(self, function: LinkedFunction) -> frozenset[m.Call]:
        return frozenset(left_empty(function.facts.body))

    def access_at(self, operation: Operation, call_site: CallSite, scope: Environment) -> Access:
        """Return the access of an operation.

        Args:
            operation: The operation.
            call_site: The call that runs the operation.
            scope: The environment in which to read the path.
        """
        path = self.entry_states.paths.normalize(operation.path, scope)
        return self._access_of(
            LazyAccessContext(self.contexts, operation, call_site, call_site, path, spell(operation.path))
        )

    def access_with_processes(self, call_site: CallSite, operation: Operation, scope: Environment) -> Access:
        """Return the access of an operation whose path is read in `scope`, reported at a call site."""
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
        """Return the access of an operation, reported at a call site with the path at that call site."""
        spelled = spell(operation.path) if call_site is origin or path is None else path.text
        around = self.contexts
        return self._access_of(
            LazyAccessContext(around, operation, call_site, origin, path, spelled, processes=processes)
        )

    def is_settled_before(self, call_site: CallSite) -> bool:
        """Return whether all ranks synchronize before a call, with no rank-dependent change in between."""
        settled = False
        for earlier in self.flows.call_sites_before(call_site):
            if self.evidence.markers.synchronizes(earlier):
                settled = True
            elif earlier.state.processes != TOP:
                operation = self.effects.operation(earlier.call, earlier.state.scope)
                settled = settled and (operation is None or operation.op in ASKING)
        return settled

    def _access_of(self, context: LazyAccessContext) -> Access:
        """Return the access with a context."""
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
        """Return whether a write goes to a sink: a device, a buffer, or a file object."""
        first = path.parts[0] if isinstance(path, m.Format) and path.parts else path
        text = first.value if isinstance(first, m.Constant) and isinstance(first.value, str) else ""
        if _OF_THE_KERNEL.match(text) is not None:
            return True
        resolver = self.flows.resolver
        name = resolver.type_name(resolver.symbol(path, scope))
        return name is not None and self.flows.catalog.exact("sink", name) is not None

    def is_parametric(self, access: Access) -> bool:
        """Return whether the callers of the function decide the path of an access."""
        return not access.fixed_here and self._depends_on_callers(access)

    @lazy
    def _leading(self) -> ReachingFunctions:
        return reaching_functions(self.entry_states, ("effect", "program"), _CALLERS_DEPTH + 1)

    def _settled(self, access: Access) -> Access:
        """Set `fixed_here` for an access that is contended whichever caller calls its function.

        The function itself must name the file or check the rank. Every caller must run in multiple processes,
        hold no lock, and pass a shared path. A download is excluded if the caller may check for the file.
        """
        function = access.call_site.function
        names_the_file = access.path is not None and access.path.spells_its_last_part
        tells_processes = access.call_site.state.processes != TOP
        is_own = names_the_file or tells_processes
        if not (self.tests.is_named_after_missing(access) if access.op == "download" else is_own):
            return access
        if not self._depends_on_callers(access) or not access.is_contended:
            return access
        edges = self.entry_states.callers(function)
        if self.entry_states.ways_in(function) != edges:
            return access
        certain = False
        for edge in edges:
            path = self.substituted(access.path, edge.call_site, function)
            private, sure = self.contexts.ownership.of(
                path, edge.call_site.function, conditions=edge.call_site.state.conditions
            )
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
        """Return the parametric accesses of a function: its own, and those that its calls reach."""
        found = (*self.direct(function), *self._led_to(function, depth))
        return tuple(access for access in found if self.is_parametric(access))

    def _led_to(self, function: LinkedFunction, depth: int) -> Iterator[Access]:
        """Yield the parametric accesses of the callees of a function, instantiated at the calls."""
        if function not in self._leading.functions:
            return
        for call_site in self.flows.call_sites(function):
            if last_name(call_site.call.function) not in self._leading.names:
                continue
            named = self.flows.resolver.callee(call_site.call, call_site.state.scope)
            if named is None or named is function or self._saves_for_all(named):
                continue
            for callee in named.implementations:
                for access in self._opened(callee, depth + 1):
                    operation = self._opened_by(access.operation, access.leaf_call, _calls(call_site, access))
                    possible = not is_infeasible(call_site, callee, access.call_site.state)
                    if possible and operation is not None:
                        same = operation is access.operation
                        opened = access if same else replace(access, operation=operation)
                        yield self.instantiate_at(call_site, callee, opened)

    def _commanded(self, function: LinkedFunction) -> list[Access]:
        """Return the accesses of the commands that a function passes to functions that run them."""
        found: dict[CallSite, list[Access]] = defaultdict(list)
        for run, done in self._runners.passed(function):
            operation = operation_of(run.started, done, run.started.command)
            leaf, *outer = run.chain
            access = self.access_at(operation, leaf, leaf.state.scope)
            for call_site in outer:
                path = self._runners.path(done.path, run) if call_site is outer[-1] else access.path
                spelled = access.path_source if path is None else path.text
                around = self.contexts
                access = self._access_of(
                    LazyAccessContext(around, operation, call_site, leaf, path, spelled, callee_access=access)
                )
            if not any(access.op == each.op and access.path == each.path for each in found[call_site]):
                found[call_site].append(access)
        return [access for accesses in found.values() for access in accesses]

    def _saves_for_all(self, function: LinkedFunction) -> bool:
        """Return whether every rank must call a function, which decides itself which rank writes."""
        return self.flows.catalog.exact("collective-saver", function.qualified) is not None

    def instantiate_at(self, call_site: CallSite, callee: LinkedFunction, access: Access) -> Access:
        """Return an access of a function, instantiated at a call of the function."""
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
        """Return a path of a function, with the arguments of a call in place of the parameters."""
        return instantiate_at_call(
            self.entry_states.paths, path, call_site.call, call_site.state.scope, callee
        )


def _calls(call_site: CallSite, access: Access) -> Calls:
    """Return the calls that lead from a call to the leaf call of an access, the nearest one to it first."""
    calls: Calls = (CallEdge(call_site, passed_as_callback=False),)
    while access.callee_access is not None:
        calls = CallEdge(access.call_site, passed_as_callback=False), *calls
        access = access.callee_access
    return calls
