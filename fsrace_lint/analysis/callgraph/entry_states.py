"""Entry states: the rank checks, handlers, and locks of all callers of a function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.callgraph.call_graph import CallGraph
from fsrace_lint.analysis.callgraph.chosen_objects import ChosenObjects
from fsrace_lint.analysis.callgraph.framework_hooks import FrameworkHooks
from fsrace_lint.analysis.callgraph.object_creation import ObjectCreation
from fsrace_lint.analysis.callgraph.protection import Protection
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.dataflow.process_set import FIRST, TOP, ProcessSet, Runs, runs
from fsrace_lint.analysis.paths.path_normal_form import PathNormalizer
from fsrace_lint.analysis.paths.rank_dependence import RankDependence
from fsrace_lint.engine.query import joint_query, lazy, query
from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.program.symbols import package_of, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.builtin_exceptions import is_os_error
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.symbols import Symbol


class EntryState(Record, frozen=True):
    """What holds at the entry of a function, whichever caller calls it.

    Attributes:
        processes: The processes that enter the function.
        caught: The names of the exceptions that every caller handles.
        locked: Whether every caller holds a lock.
        first: The scope whose rank 0 every caller lets run the function before the other ranks.
    """

    processes: ProcessSet
    caught: frozenset[str]
    locked: bool
    first: str | None = None

    def join(self, other: EntryState) -> EntryState:
        """Return what holds for both callers."""
        return EntryState(
            self.processes | other.processes,
            self.caught & other.caught,
            self.locked and other.locked,
            self.first if other.first is not None else None,
        )


_ANYBODY: Final = EntryState(TOP, frozenset(), locked=False)


class EntryStates:
    """Computes entry states as a fixpoint over all call edges."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows = flows
        self.catalog = flows.catalog
        self._edges = CallGraph(flows)
        self.summaries = self._edges.summaries
        self.rank_tests = self._edges.rank_tests
        """The rank tests, including the arguments of all callers."""
        self.rank_dependence = RankDependence(self.rank_tests)
        self.paths = PathNormalizer(self.rank_dependence)
        self.hooks = FrameworkHooks(flows)
        self.protection = Protection(self.hooks, self.summaries, self.rank_tests)
        self.creation = ObjectCreation(self)
        self._chosen = ChosenObjects(self.rank_tests)
        self.relevance = flows.relevance

    def callers(self, function: LinkedFunction) -> tuple[CallEdge, ...]:
        """Return all resolved call edges into a function.

        A hook that restores a state is left out if others call the function: it finds what they have made.
        """
        edges = self._edges.callers(function)
        return tuple(edge for edge in edges if not self._restores(edge)) or edges

    def callers_lazily(self, function: LinkedFunction) -> Iterator[CallEdge]:
        """Yield the call edges of `callers` as they are found, unordered."""
        late, is_called = [], False
        for edge in self._edges.callers_lazily(function):
            if self._restores(edge):
                late.append(edge)
            else:
                is_called = True
                yield edge
        yield from () if is_called else late

    def _restores(self, edge: CallEdge) -> bool:
        hook = self.hooks.of(edge.call_site.function)
        return hook is not None and hook.restores

    def is_only_called(self, function: LinkedFunction) -> bool:
        """Return whether a function has callers, and is not passed as a callback."""
        called = next(self._edges.callers_lazily(function), None)
        return (
            called is not None
            and not called.passed_as_callback
            and not any(self._edges.callback_arguments(function))
        )

    @joint_query
    def entry_state(self, function: LinkedFunction) -> Mapping[LinkedFunction, EntryState]:
        """Return the entry state of a function, and those of other functions that are computed with it."""
        way = self._free_way(function)
        if way:
            return dict.fromkeys(way, _ANYBODY)
        known = self.entry_state.known
        callers = self.upward(function, lambda each: () if known(each) else self.callers(each))
        return self._solve([caller for caller in callers if known(caller) is None])

    def _free_way(self, function: LinkedFunction) -> Iterable[LinkedFunction]:
        """Return a call chain to a function from a root on which no caller restricts anything, if one exists.

        No restriction then holds for all callers, and the other callers need not be analyzed.
        """
        way = {function: self._free_callers(function)}
        seen = {function}
        while way:
            here = next(reversed(way))
            for caller in way[here]:
                if caller is None or self.entry_state.known(caller) == _ANYBODY:
                    return way
                if caller not in seen:
                    seen.add(caller)
                    way[caller] = self._free_callers(caller)
                    break
            else:
                del way[here]
        return ()

    def _free_callers(self, function: LinkedFunction) -> Iterator[LinkedFunction | None]:
        """Yield the callers that restrict nothing, or None if the function has no callers."""
        if self.decorated(function) != TOP or self._is_locked_by_decorator(function):
            return
        is_called = False
        for edge in self.callers_lazily(function):
            is_called = True
            if self._entering(edge, _ANYBODY, function) == _ANYBODY:
                yield edge.call_site.function
        is_root = not is_called and not self._edges.name_only_callers(function)
        if is_root and self.creation.processes(function) == TOP:
            yield None

    def processes(self, call_site: CallSite) -> ProcessSet:
        """Return the processes that reach a call within its function, including tests of parameters.

        A test such as `if chosen:` divides the processes as the arguments of all callers do. If the name of a
        parameter is misleading (`rank` receives the local rank), the arguments override the name.
        """
        processes, late = call_site.state.processes, self._chosen.processes(call_site)
        for literal in call_site.state.conditions:
            late &= self.deciding(literal)
        named_wrongly = late & ~processes and any(map(self._is_named_wrongly, call_site.state.conditions))
        return late if named_wrongly else processes & late

    def _is_named_wrongly(self, literal: PathCondition) -> bool:
        """Return whether the arguments of callers allow processes that the function alone excludes."""
        late = self.deciding(literal)
        return late != TOP and bool(late & ~self._by_code_alone(literal))

    def _by_code_alone(self, literal: PathCondition) -> ProcessSet:
        """Return the processes that satisfy a condition, according to the code of the function alone."""
        return self._undecided(literal.test, literal.scope)[0 if literal.truth else 1] or TOP

    @query
    def _undecided(self, test: m.Expr, scope: Environment) -> RankPartition:
        return self.flows.partition(test, scope)

    def deciding(self, literal: PathCondition) -> ProcessSet:
        """Return the processes that satisfy a condition, according to the arguments of all callers."""
        return self._decided(literal.test, literal.scope)[0 if literal.truth else 1] or TOP

    @query
    def _decided(self, test: m.Expr, scope: Environment) -> RankPartition:
        return self.rank_tests.partition(test, scope)

    def ways_in(self, function: LinkedFunction) -> tuple[CallEdge, ...]:
        """Return the call edges into a function that multiple processes take."""
        return tuple(edge for edge in self.callers(function) if self._who_takes(edge) is not Runs.ONE)

    def unordered_callers(self, function: LinkedFunction, ways: tuple[CallEdge, ...]) -> tuple[CallEdge, ...]:
        """Return the call edges that do not serialize their processes, or all edges if every edge does.

        An edge serializes processes by a lock, or by letting one rank go first.
        """
        context = self.entry_state(function)
        return tuple(edge for edge in ways if not self._is_apart(edge, context))

    def _is_apart(self, edge: CallEdge, context: EntryState) -> bool:
        brought = self._brought(edge, self.entry_state(edge.call_site.function))
        ordered = brought.first is not None and context.first is None
        return ordered or (brought.locked and not context.locked)

    def equally_wide_callers(self, call_site: CallSite, ways: tuple[CallEdge, ...]) -> tuple[CallEdge, ...]:
        """Return the call edges that can explain how many processes reach a call in the function.

        An edge that one process of each node takes does not show that all processes reach the call.
        """
        if runs(self.processes(call_site) & self.entry_state(call_site.function).processes) is Runs.PER_NODE:
            return ways
        return tuple(edge for edge in ways if self._who_takes(edge) is not Runs.PER_NODE) or ways

    def _who_takes(self, edge: CallEdge) -> Runs:
        processes = (
            self.processes(edge.call_site) & edge.only & self.entry_state(edge.call_site.function).processes
        )
        return Runs.MANY if processes and edge.starts_several else runs(processes)

    @staticmethod
    def feasible_callers(call_site: CallSite, edges: tuple[CallEdge, ...]) -> tuple[CallEdge, ...]:
        """Return the call edges that pass no constant that rules out reaching a call.

        Args:
            call_site: The call in the function.
            edges: The call edges into the function.
        """
        function, state = call_site.function, call_site.state
        return tuple(
            edge
            for edge in edges
            if edge.passed_as_callback or not is_infeasible(edge.call_site, function, state)
        )

    @staticmethod
    def upward(
        function: LinkedFunction, ways: Callable[[LinkedFunction], tuple[CallEdge, ...]]
    ) -> list[LinkedFunction]:
        """Return a function and all its direct and indirect callers by some call edges."""
        seen = {function: None}
        waiting = [function]
        while waiting:
            for edge in ways(waiting.pop()):
                if edge.call_site.function not in seen:
                    seen[edge.call_site.function] = None
                    waiting.append(edge.call_site.function)
        return list(seen)

    def _solve(self, functions: list[LinkedFunction]) -> dict[LinkedFunction, EntryState]:
        """Return the entry states of functions whose callers are known or among them."""
        contexts: dict[LinkedFunction, EntryState] = {}
        open_ended = {function for function in functions if not self.callers(function)}
        while True:
            changed = True
            while changed:
                changed = False
                for function in functions:
                    context = self._join(function, contexts, open_ended)
                    if context is not None and contexts.get(function) != context:
                        contexts[function] = context
                        changed = True
            unreached = {function for function in functions if function not in contexts}
            if not unreached:
                break
            open_ended |= self._called_in_circles(unreached)
        return contexts

    def _called_in_circles(self, functions: set[LinkedFunction]) -> set[LinkedFunction]:
        """Return the functions in call cycles that none of the other functions call."""

        def ways(function: LinkedFunction) -> tuple[CallEdge, ...]:
            return tuple(edge for edge in self.callers(function) if edge.call_site.function in functions)

        above = {function: frozenset(self.upward(function, ways)) for function in functions}
        return {one for one, callers in above.items() if all(above[each] == callers for each in callers)}

    def _join(
        self,
        function: LinkedFunction,
        contexts: dict[LinkedFunction, EntryState],
        open_ended: set[LinkedFunction],
    ) -> EntryState | None:
        if function in open_ended:
            presumed = self._edges.name_only_callers(function)
            anybody = replace(_ANYBODY, processes=self.creation.processes(function))
            brought = [self._entering(edge, _ANYBODY, function) for edge in presumed] or [anybody]
        else:
            outer = [
                (edge, self.entry_state.known(edge.call_site.function)) for edge in self.callers(function)
            ]
            known = [(edge, known or contexts.get(edge.call_site.function)) for edge, known in outer]
            brought = [
                self._entering(edge, context, function) for edge, context in known if context is not None
            ]
        if not brought:
            return None
        joined = functools.reduce(EntryState.join, brought)
        locked = joined.locked or self._is_locked_by_decorator(function)
        return replace(joined, processes=joined.processes & self.decorated(function), locked=locked)

    def _entering(self, edge: CallEdge, outer: EntryState, function: LinkedFunction) -> EntryState:
        """Return the entry state of a function by one call edge, in the processes that have its object."""
        brought = self._brought(edge, outer)
        return replace(brought, processes=brought.processes & self.having_object(edge, function))

    def having_object(self, edge: CallEdge, function: LinkedFunction) -> ProcessSet:
        """Return the processes that have an object on which a call edge can run a method."""
        is_given = edge.is_on_self or edge.passed_as_callback
        return TOP if is_given else self.creation.processes(function)

    def _brought(self, edge: CallEdge, outer: EntryState) -> EntryState:
        """Return the entry state by one call edge, given the entry state of the caller."""
        reached = self.processes(edge.call_site) & edge.only & outer.processes
        processes = TOP if reached and edge.starts_several else reached
        first = self.protection.serializing_context(edge.call_site) or outer.first
        if edge.passed_as_callback or edge.spawn is not None:
            locked = edge.helper is not None and self._runs_locked(edge.helper, edge.parameter)
            return EntryState(processes, frozenset(), locked, edge.first)
        here = frozenset(filter(is_os_error, self.protection.caught(edge.call_site)))
        locked = self.protection.locked(edge.call_site) or outer.locked
        return EntryState(processes, here | outer.caught, locked, first)

    def _is_locked_by_decorator(self, function: LinkedFunction) -> bool:
        if any(map(self.protection.locks.is_decorator, self.flows.decorators(function))):
            return True
        for _, target in self._decorators(function):
            if (
                isinstance(target, LinkedFunction)
                and target is not function
                and self._runs_locked(target, None)
            ):
                return True
        return False

    def _runs_locked(self, helper: LinkedFunction, parameter: str | None) -> bool:
        """Return whether a helper or a decorator always holds a lock when it runs the callback."""
        ways = tuple(self.summaries.callback_call_chains(helper, parameter))
        return bool(ways) and all(any(map(self.protection.locked, way)) for way in ways)

    @query
    def decorated(self, function: LinkedFunction) -> ProcessSet:
        """Return the processes in which the decorators of a function, or the framework, run it."""
        return self._let_through(function)

    def _let_through(self, function: LinkedFunction) -> ProcessSet:
        hook = self.hooks.of(function)
        processes = TOP if hook is None or self._is_built_with(function) else FIRST.get(hook.runs, TOP)
        for name, target in self._decorators(function):
            entry = self.catalog.find("decorator", name)
            if entry is not None:
                processes &= FIRST[entry.scope]
            elif isinstance(target, LinkedFunction) and target is not function:
                processes &= self.summaries.callback_processes(target, None)
        return processes

    def _is_built_with(self, function: LinkedFunction) -> bool:
        """Return whether a constructor calls a method on its own object."""
        return any(
            edge.is_on_self and edge.call_site.function.facts.name == "__init__"
            for edge in self.callers(function)
        )

    def synchronizes_after(self, function: LinkedFunction) -> str:
        """Return the name of the decorator that contains a barrier after a function, or an empty string."""
        for name, _ in self._decorators(function):
            entry = self.catalog.find("decorator", name)
            if entry is not None and entry.barrier:
                return name.rpartition(".")[2]
        return ""

    def muted_in(self, function: LinkedFunction) -> frozenset[str]:
        """Return the libraries whose collectives return immediately in a function.

        One call that passes the function to a helper of such a library is enough, whatever other callers do.
        """
        return self._find_muted(function) if self._can_mute else frozenset()

    @lazy
    def _can_mute(self) -> bool:
        """Whether the project uses a helper in whose callbacks collectives return immediately."""
        found = ((kind, name) for kind in ("decorator", "run-once") for name in self.catalog.names(kind))
        muting = [name for kind, name in found if self.catalog.exact(kind, name).mutes]
        names = self.relevance.library_names(name.rpartition(".")[2] for name in muting)
        return bool(self.relevance.using(names - {""}))

    @query(provisional=frozenset())
    def _find_muted(self, function: LinkedFunction) -> frozenset[str]:
        entries = ((self.catalog.find("decorator", name), name) for name, _ in self._decorators(function))
        found = frozenset(package_of(name) for entry, name in entries if entry is not None and entry.mutes)
        edges = self.callers(function)
        found |= {edge.mutes for edge in edges if edge.mutes}
        if found or not edges:
            return found
        common = self.muted_in(edges[0].call_site.function)
        for edge in edges[1:] if common else ():
            common &= self.muted_in(edge.call_site.function)
        return common

    def _decorators(self, function: LinkedFunction) -> Iterator[tuple[str, Symbol | None]]:
        """Yield the decorators of a function: their qualified names and symbols."""
        for decorator in self.flows.decorators(function):
            expr = decorator.expr
            target = expr.function if isinstance(expr, m.Call) else expr
            entity = self.flows.resolver.symbol(target, decorator.scope)
            class_ = self.flows.resolver.class_of(entity)
            runs = None if class_ is None else class_.method("__call__")
            yield qualified_name(entity) or f"*.{last_name(target)}", runs or entity
