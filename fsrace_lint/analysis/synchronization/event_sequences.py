"""The events of a function in order: filesystem accesses and sync points.

The sequence of each function is computed once. Calls of other functions of the
project are replaced by the events of the callee, as seen from the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import AtCall
from fsrace_lint.analysis.callgraph.concurrency import Doubt, Evidence
from fsrace_lint.analysis.callgraph.reaching_functions import reaching_functions
from fsrace_lint.analysis.callgraph.synchronizing_calls import synchronizes
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.dataflow.loops import calls_in as calls_in_statements
from fsrace_lint.analysis.dataflow.process_set import MAIN, SYNCHRONIZING, TOP, ProcessSet
from fsrace_lint.analysis.ranks.process_groups import names_group
from fsrace_lint.analysis.synchronization.context_events import ContextEvents
from fsrace_lint.analysis.values.call_arguments import arguments_of, holds, library_argument
from fsrace_lint.analysis.values.constants import constant_passed
from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.depth_budget import DepthBudget
from fsrace_lint.engine.query import lazy, query, recursive_query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.accesses.model import Access, Operation
    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker
    from fsrace_lint.analysis.callgraph.reaching_functions import ReachingFunctions
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.synchronization.taint import TaintAnalysis
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog import Op
    from fsrace_lint.catalog.entries import CollectiveSaver
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 4
_LONGEST: Final = 200
_KEEPERS: Final = frozenset({"cache", "lru_cache"})
_KINDS: Final = frozenset({"hasattr", "isinstance", "issubclass", "callable"})
FAILING: Final = frozenset({"raise", "exit"})
"""The exits of a branch by which a rank fails or ends."""
_LEADING: Final = (*SYNCHRONIZING, "effect", "program", "run-once", "decorator", "first", "lock")


_Inner: TypeAlias = "tuple[CallSite, LinkedFunction, frozenset[CallSite] | None]"
"""A call, a function that it runs, and the only calls in that function that count; None for all of them."""


class SequenceItem(AtCall, Record, frozen=True, eq=False):
    """One event of a function: an access, or a sync point.

    Attributes:
        call_site: The call in the function that the sequence belongs to.
        leaf_call: The call that runs the operation.
        arriving: The ranks that reach `call_site`, among those that enter the function.
        processes: The ranks among them that run the operation.
        conditions: The conditions before it, from `call_site` to `leaf_call`.
        held: The locks that are held.
        serialized_by: The scope whose first process runs before the other ranks, if any.
        operation: The operation. None for a sync point.
        path: The path of the operation.
        sync_point: The name of the call that must match on all ranks. Empty for an access.
        certain: Whether a sync point depends on no condition except a check for multiple processes.
        call_chain: The calls by which multiple processes reach it.
        marker: The evidence at the end of the call chain.
        evidence: How certain it is that multiple processes run it.
        doubt: Why the call chain is not certain.
    """

    call_site: CallSite
    leaf_call: CallSite
    arriving: ProcessSet
    processes: ProcessSet
    conditions: tuple[PathCondition, ...]
    held: tuple[m.Expr, ...]
    serialized_by: str | None
    operation: Operation | None = None
    path: AbstractPath | None = None
    sync_point: str = ""
    certain: bool = True
    call_chain: tuple[CallSite, ...] = ()
    marker: ConcurrencyMarker | None = None
    evidence: Evidence = Evidence.EVIDENT
    doubt: Doubt = Doubt.NONE

    @property
    def op(self) -> Op | None:
        """The operation. None for a sync point."""
        return None if self.operation is None else self.operation.op

    @property
    def is_for_main(self) -> bool:
        """Whether the main process reaches the call."""
        return bool(self.arriving & MAIN)

    @property
    def is_of_group(self) -> bool:
        """Whether a collective names a process group that is not the group of all processes."""
        return names_group(self.leaf_call.call, self.leaf_call.state.scope)


class EventSequences:
    """The event sequences of the functions of a project."""

    def __init__(self, accesses: Accesses, differences: TaintAnalysis) -> None:
        """Initialize for a project."""
        self.accesses = accesses
        self.flows = accesses.flows
        self.catalog = accesses.flows.catalog
        self.entry_states = accesses.entry_states
        self.taint = differences
        self.budget = DepthBudget(_DEEPEST, CycleDetector())
        self._contexts = ContextEvents(self.flows)

    def may_reach_sync_point(self, function: LinkedFunction) -> bool:
        """Return whether a function or its callees may contain an event."""
        return function in self._leading.functions

    def of(self, function: LinkedFunction, depth: int = 0) -> tuple[SequenceItem, ...]:
        """Return the events of a function and its callees, in order."""
        if not self.may_reach_sync_point(function):
            return ()
        return self._found(function, depth)

    @recursive_query(beyond=())
    def _found(self, function: LinkedFunction, depth: int) -> tuple[SequenceItem, ...]:
        return tuple(self._find(function, depth))

    def _find(self, function: LinkedFunction, depth: int) -> Iterator[SequenceItem]:
        left = _LONGEST
        for item in self._items(function):
            for step in (item,) if isinstance(item, SequenceItem) else self._inlined(*item, depth):
                if left == 0:
                    return
                left -= 1
                yield step

    @query
    def _items(self, function: LinkedFunction) -> tuple[SequenceItem | _Inner, ...]:
        """Return the events of a function, and its calls of functions that may contain events."""
        return tuple(
            item
            for call_site, run in self._contexts.within(function)
            for item in (self._read(call_site) if run is None else self._read_context(call_site, run))
        )

    @staticmethod
    def _read_context(call_site: CallSite, run: tuple[CallSite, ...]) -> Iterator[_Inner]:
        """Yield what a context manager of the project runs as it is entered or left."""
        if run:
            yield call_site, run[0].function, frozenset(run)

    def _read(self, call_site: CallSite) -> Iterator[SequenceItem | _Inner]:
        called = last_name(call_site.call.function)
        if called not in self._leading.names:
            return
        scope = call_site.state.scope
        sync_point, certain = self._meeting(call_site)
        if sync_point:
            yield replace(self.event(call_site), sync_point=sync_point, certain=certain)
            return
        operation = self.accesses.operation(call_site)
        if operation is not None:
            done = replace(
                self.event(call_site),
                operation=operation,
                processes=self.accesses.contexts.acting(operation, call_site),
            )
            yield replace(done, path=self.entry_states.paths.normalize(operation.path, scope))
            if operation.op == "rename" and operation.target is not None:
                made = replace(operation, op="create", path=operation.target, target=None)
                yield replace(
                    done, operation=made, path=self.entry_states.paths.normalize(operation.target, scope)
                )
            return
        callee = self.flows.resolver.callee(call_site.call, scope)
        if callee is not None and callee is not call_site.function and not callee.facts.is_generator:
            yield call_site, callee, None
            after = self.entry_states.synchronizes_after(callee)
            if after:
                yield replace(self.event(call_site), sync_point=after)

    def event(self, call_site: CallSite) -> SequenceItem:
        """Return a call as an event, without an operation and without a sync point."""
        protection = self.entry_states.protection
        processes = self.entry_states.processes(call_site)
        conditions, held = call_site.state.conditions, protection.held(call_site)
        return SequenceItem(
            call_site,
            call_site,
            processes,
            processes,
            conditions,
            held,
            protection.serializing_context(call_site),
        )

    def _inlined(
        self, call_site: CallSite, callee: LinkedFunction, among: frozenset[CallSite] | None, depth: int
    ) -> Iterator[SequenceItem]:
        """Yield the events of a callee, as seen from a call.

        Of a context manager, only the sync points of all processes count, among some of its calls.
        """
        steps = self.of(callee, depth + 1)
        if among is not None:
            steps = tuple(s for s in steps if s.sync_point and s.processes == TOP and s.call_site in among)
        if not steps:
            return
        here = self.event(call_site)
        allowed = here.processes & self.entry_states.decorated(callee)
        allowed &= self.entry_states.creation.processes(callee)
        ruled_out: dict[CallSite, bool] = {}
        for step in steps:
            if step.call_site not in ruled_out:
                ruled_out[step.call_site] = self._is_ruled_out(step.call_site, here.call_site, callee)
            if ruled_out[step.call_site]:
                continue
            yield replace(
                step,
                call_site=here.call_site,
                arriving=here.arriving,
                processes=step.processes & allowed,
                conditions=(*here.conditions, *step.conditions),
                held=(*here.held, *step.held),
                serialized_by=step.serialized_by or here.serialized_by,
                path=self.accesses.substituted(step.path, here.call_site, callee),
                certain=step.certain and (not step.sync_point or self._is_certain(step, callee)),
            )

    def _is_ruled_out(self, inner: CallSite, call_site: CallSite, callee: LinkedFunction) -> bool:
        """Return whether the constant arguments of a call keep it from reaching an inner call."""
        if is_infeasible(call_site, callee, inner.state):
            return True
        first = self.catalog.find("first", self.name_of(inner))
        if first is None or not first.rank:
            return False
        rank = library_argument(inner.call, first.rank)
        value = None if rank is None else constant_passed(rank, call_site.call, callee)
        return value is not None and isinstance(value.value, int) and value.value < 0

    def name_of(self, call_site: CallSite) -> str:
        """Return the qualified name of the function that a call calls, as the library models spell it."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        return self.flows.resolver.type_name(entity) or f"*.{last_name(call_site.call.function)}"

    def _meeting(self, call_site: CallSite) -> tuple[str, bool]:
        """Return the name of a sync point, empty if the call is none, and whether the call always waits."""
        name, called = self.name_of(call_site), last_name(call_site.call.function)
        once, first = self.catalog.find("run-once", name), self.catalog.find("first", name)
        saver: CollectiveSaver | None = self.catalog.find("collective-saver", name)
        if once is not None and once.barrier:
            return called, True
        if first is not None:
            return called if first.waits == "barrier" else "", True
        if saver is not None:
            ordinary = bool(saver.unless) and holds(saver.unless, call_site.call)
            return "" if ordinary else called, saver.when == "always"
        collective = self.catalog.find("collective", name)
        always = collective is None or bool(collective.when == "always")
        waits = synchronizes(self.catalog, name, call_site.call)
        return called if waits and (always or not _gives_loaders(call_site.call)) else "", always

    def access(self, step: SequenceItem) -> Access | None:
        """Return the access of an event, or None for a sync point."""
        operation, seen = step.operation, self.accesses.access_with_path
        return (
            None
            if operation is None
            else seen(operation, step.call_site, step.leaf_call, step.path, step.processes)
        )

    def is_save(self, call_site: CallSite) -> bool:
        """Return whether a call is a collective save, in which each rank saves its part under one path."""
        return self.catalog.find("collective-saver", self.name_of(call_site)) is not None

    def _is_certain(self, step: SequenceItem, function: LinkedFunction) -> bool:
        """Return whether a sync point depends on no condition that is equal on all ranks, such as a setting.

        A rank that fails a check and raises does not count. A function that keeps its results runs only once
        for the same arguments.
        """
        conditions = (each for each in step.call_site.state.conditions if each.exit not in FAILING)
        return not _keeps_results(function) and all(map(self._is_met_in_use, conditions))

    def _is_met_in_use(self, condition: PathCondition) -> bool:
        """Return whether a condition holds in some runs with multiple processes, whatever the settings."""
        if condition.attempt is not None:
            return self._asks_about_setup(condition.attempt, condition.scope)
        difference = self.taint.of_test(condition)
        by_files = difference is not None and difference.kind in {"files", "own"}
        return by_files or self._is_about_setup(condition.test, condition.scope)

    def _asks_about_setup(self, attempt: m.Try, scope: Environment) -> bool:
        """Return whether a `try` only asks for the rank, the number of processes, or their group."""
        calls = list(calls_in_statements(attempt.body))
        return bool(calls) and all(self.flows.asks_about_group(call, scope) for call in calls)

    def _is_about_setup(self, test: m.Expr, scope: Environment) -> bool:
        """Return whether a condition only checks for multiple processes, or for the type of an object."""
        if isinstance(test, m.Boolean) and test.operator == "and":
            return all(self._is_about_setup(part, scope) for part in test.values)
        if isinstance(test, m.Call) and last_name(test.function) in _KINDS:
            return True
        return self.entry_states.rank_tests.partition(test, scope) != (TOP, TOP)

    @lazy
    def _leading(self) -> ReachingFunctions:
        """The functions that may reach an access or a sync point, within the depth limit."""
        return reaching_functions(self.entry_states, _LEADING, _DEEPEST + 1)


def _keeps_results(function: LinkedFunction) -> bool:
    """Return whether a decorator returns the result of an earlier call with the same arguments."""
    decorators = (d.function if isinstance(d, m.Call) else d for d in function.facts.decorators)
    return any(last_name(decorator) in _KEEPERS for decorator in decorators)


def _gives_loaders(call: m.Call) -> bool:
    """Return whether all arguments of a call are data loaders, by their names."""
    given = [last_name(value).lower() for _, _, value in arguments_of(call)]
    return bool(given) and all(name.endswith("loader") for name in given)
