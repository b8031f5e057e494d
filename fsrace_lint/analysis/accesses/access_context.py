"""The context of an access: the processes that run it, what serializes them, and how its path is shared."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Final, Protocol

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.accesses.path_alternatives import PathAlternatives
from fsrace_lint.analysis.accesses.path_ownership import PathOwnership
from fsrace_lint.analysis.callgraph.call_edges import CallEdge
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.infeasible_paths import alternatives_left
from fsrace_lint.analysis.dataflow.process_set import FIRST, TOP, runs
from fsrace_lint.analysis.paths.work_items import Share
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, unnegated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.accesses.model import Access, Operation
    from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyTrace
    from fsrace_lint.analysis.callgraph.concurrency_evidence import ConcurrencyEvidence
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet, Runs
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.paths.storage import Storage
    from fsrace_lint.program.modules import LinkedFunction


_ONE: Final = frozenset(FIRST.values()) - {TOP}
_ALL: Final = frozenset({"all", "each", "every"})


class Broken(Protocol):
    """Finds what breaks the locks that a function holds at a call."""

    def around(self, call_site: CallSite, /) -> tuple[Access, ...]:
        """Return the accesses that break these locks, or nothing if one lock works."""


class AccessContexts:
    """Computes the parts of access contexts that depend on callers.

    Attributes:
        broken_locks: Finds the locks that do not work, once the locks of the project are known.
    """

    broken_locks: Broken | None = None

    def __init__(self, evidence: ConcurrencyEvidence, storage: Storage) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.evidence = evidence
        self.entry_states = entry_states = evidence.entry_states
        self.alternatives = alternatives = PathAlternatives(entry_states, evidence.markers.constants)
        self.ownership = PathOwnership(alternatives)
        self.ownership_by_default = PathOwnership(alternatives, by_default=True)
        self._guards = entry_states.rank_tests
        self._paths, self._storage = entry_states.paths, storage

    def first_let_in(self, call_site: CallSite) -> str | None:
        """Return the scope whose rank 0 reaches a call before the other ranks, or None."""
        function = call_site.function
        return (
            self.entry_states.protection.serializing_context(call_site)
            or self.entry_states.entry_state(function).first
        )

    def breaking(self, call_site: CallSite) -> tuple[Access, ...]:
        """Return what breaks the locks that are held at a call, or nothing if one lock works."""
        is_held = self.entry_states.protection.locked(call_site)
        found = self.broken_locks.around(call_site) if is_held and self.broken_locks is not None else ()
        if is_held and not found:
            return ()
        if not self.entry_states.entry_state(call_site.function).locked:
            return found
        above = self._breaking_above(call_site.function)
        return (*found, *above) if above else ()

    @query(provisional=())
    def _breaking_above(self, function: LinkedFunction) -> tuple[Access, ...]:
        """Return what breaks the locks that some caller of a function holds."""
        edges = (edge for edge in self.entry_states.callers(function) if not edge.passed_as_callback)
        return next(filter(None, (self.breaking(edge.call_site) for edge in edges)), ())

    def acting(self, operation: Operation, call_site: CallSite) -> ProcessSet:
        """Return the processes that run an operation, of those that reach the call."""
        processes = self.entry_states.processes(call_site)
        if operation.only is not None:
            processes &= FIRST[operation.only]
        if operation.condition is not None:
            processes &= self._guards.partition(operation.condition, call_site.state.scope)[0]
        return processes

    def left_by(self, call_site: CallSite, below: CallSite) -> ProcessSet:
        """Return the processes that reach a call and, in the function that it calls, another call."""
        processes = self.entry_states.processes(call_site)
        for literal in call_site.state.conditions:
            side = 0 if unnegated(literal.test, truth=literal.truth)[1] else 1
            left = alternatives_left(literal, call_site, below.function, below.state)
            who = [self._guards.partition(each, literal.scope)[side] for each in left]
            processes &= functools.reduce(operator.or_, who) if who else TOP
        return processes

    def who_runs(self, call_site: CallSite, processes: ProcessSet) -> Runs:
        """Classify the processes that run an operation at a call, with the restrictions by all callers."""
        function = call_site.function
        entering = self.entry_states.decorated(function) & self.entry_states.entry_state(function).processes
        return runs(processes & entering)

    def shared_by(self, path: AbstractPath | None, spelled: str) -> Reach:
        """Return the processes that share a path that is not private."""
        named = self._storage.named(path, spelled)
        if named is not None:
            return Reach.SHARED if named else Reach.NODE
        local = self._paths.node_local.holds(path) or self._storage.filesystem == "local"
        return Reach.NODE if local else Reach.SHARED

    def is_usually_private(self, path: AbstractPath | None, function: LinkedFunction) -> bool:
        """Return whether callers pass private paths, except some that no evidence connects to processes."""
        is_private, others = self.ownership.callers_by_ownership(path, function)
        return is_private and all(self.evidence.trace(each).evidence < Evidence.LIKELY for each in others)

    def is_opened(self, call_site: CallSite) -> bool:
        """Return whether a setting decides if all ranks reach a call: `on_each_node or rank == 0`."""
        for literal in call_site.state.conditions:
            test, truth = unnegated(literal.test, truth=literal.truth)
            if isinstance(test, m.Boolean) and (test.operator == "or") == truth:
                splits = [self._guards.partition(side, literal.scope) for side in test.values]
                who = {split[0 if truth else 1] for split in splits}
                sides = (unnegated(side, truth=truth) for side in test.values)
                if not who.isdisjoint(_ONE) and any(holds and _says_all(side) for side, holds in sides):
                    return True
        return False


class LazyAccessContext:
    """The context of an access, computed on demand.

    Most accesses are discarded by their operation and code, and the callers are expensive to analyze.
    """

    def __init__(
        self,
        contexts: AccessContexts,
        operation: Operation,
        call_site: CallSite,
        leaf_call: CallSite,
        path: AbstractPath | None,
        path_source: str,
        *,
        callee_access: Access | None = None,
        processes: ProcessSet | None = None,
    ) -> None:
        """Initialize without looking at callers.

        Args:
            contexts: Computes the parts that depend on callers.
            operation: The operation.
            call_site: The call at which the access is reported.
            leaf_call: The call that runs the operation.
            path: The path. If it is unpacked from a parameter, it is used only if it is private.
            path_source: The path, as spelled in the source.
            callee_access: The same access in the function that `call_site` calls, if any.
            processes: The processes that run the operation, if they are already known.
        """
        self.contexts = contexts
        self.operation, self.call_site, self.leaf_call = operation, call_site, leaf_call
        self.path, self.path_source, self.callee_access = path, path_source, callee_access
        self._processes = processes
        if path is not None and path.is_part and not self.owned[0]:
            self.path = None

    @lazy
    def processes(self) -> ProcessSet:
        """The processes that run the operation, of those that enter the function."""
        if self._processes is not None:
            return self._processes
        if self.callee_access is not None:
            call_site, below = self.call_site, self.callee_access.call_site
            edge = CallEdge(call_site, passed_as_callback=False)
            having = self.contexts.entry_states.having_object(edge, below.function)
            return self.callee_access.own & self.contexts.left_by(call_site, below) & having
        return self.contexts.acting(self.operation, self.call_site)

    @lazy
    def own(self) -> ProcessSet:
        """The processes that get from the call site to the operation, without restrictions by callers."""
        return self.processes & self.contexts.entry_states.decorated(self.call_site.function)

    @lazy
    def runs(self) -> Runs:
        """Which processes run the operation, with restrictions by all callers."""
        return self.contexts.who_runs(self.call_site, self.processes)

    @lazy
    def caught(self) -> frozenset[str]:
        """The names of the exceptions that are handled around the access."""
        entry_states = self.contexts.entry_states
        below = frozenset[str]() if self.callee_access is None else self.callee_access.caught
        here = entry_states.protection.caught(self.call_site)
        return below | here | entry_states.entry_state(self.call_site.function).caught

    @lazy
    def locked(self) -> bool:
        """Whether an interprocess lock is held that excludes other processes."""
        entry_states = self.contexts.entry_states
        below = self.callee_access is not None and self.callee_access.locked
        here = entry_states.protection.locked(self.call_site)
        is_held = here or entry_states.entry_state(self.call_site.function).locked
        return below or (is_held and not self.contexts.breaking(self.call_site))

    @property
    def broken_locks(self) -> tuple[Access, ...]:
        """What breaks the locks that are held, if none of them works."""
        below = () if self.callee_access is None else self.callee_access.broken_locks
        return () if self.locked else (*self.contexts.breaking(self.call_site), *below)

    @lazy
    def serialized_by(self) -> str | None:
        """The scope whose rank 0 runs the access before the other ranks, or None."""
        below = None if self.callee_access is None else self.callee_access.serialized_by
        return self.contexts.first_let_in(self.call_site) or below

    @lazy
    def owned(self) -> tuple[bool, bool]:
        """Whether the path is private to the process, and whether that is certain."""
        function, conditions = self.call_site.function, self.call_site.state.conditions
        return self.contexts.ownership.of(self.path, function, conditions=conditions)

    @property
    def share(self) -> Share:
        """Which processes have the same path, as far as the work is divided among them.

        Processes that extract different archives create different files, also in one directory.
        """
        ownership, function = self.contexts.ownership, self.call_site.function
        share = ownership.share(self.path, function, self.call_site.state.conditions)
        if self.operation.op == "extract":
            share = max(share, ownership.share_of_call(self.leaf_call))
        if share < Share.FEW and self.contexts.is_usually_private(self.path, function):
            return Share.FEW
        return share

    @lazy
    def reach(self) -> Reach:
        """The processes that share the path."""
        private, _ = self.owned
        return Reach.PRIVATE if private else self.contexts.shared_by(self.path, self.path_source)

    @lazy
    def certain(self) -> bool:
        """Whether the reach is certain, and no setting decides whether all ranks run the access."""
        _, certain = self.owned
        return certain and not self.is_opened

    @property
    def is_opened(self) -> bool:
        """Whether a setting decides if all ranks run the access."""
        return any(map(self.contexts.is_opened, {self.call_site, self.leaf_call}))

    def is_off_by_default(self, call_sites: Iterable[CallSite]) -> bool:
        """Whether several processes come to one path only if a setting says so.

        Args:
            call_sites: The call chain to the access.
        """
        function, conditions = self.call_site.function, self.call_site.state.conditions
        is_private, _ = self.contexts.ownership_by_default.of(self.path, function, conditions=conditions)
        return is_private or self.contexts.alternatives.is_one_by_default(call_sites)

    @lazy
    def trace(self) -> ConcurrencyTrace:
        """The call chain by which multiple processes reach the function of the call site.

        A caller that passes a private path is not on it, if other callers pass a shared one.
        """
        trace = self.contexts.evidence.trace(self.call_site)
        if not trace.call_chain or self.owned[0]:
            return trace
        private, others = self.contexts.ownership.callers_by_ownership(self.path, self.call_site.function)
        if not private or trace.call_chain[0] in others:
            return trace
        edges = self.contexts.entry_states.callers(self.call_site.function)
        direct = [edge.call_site for edge in edges if edge.call_site in others]
        found = [(self.contexts.evidence.trace(each), each) for each in direct]
        best, caller = max(found, key=lambda each: each[0].evidence, default=(trace, None))
        return trace if caller is None else replace(best, call_chain=(caller, *best.call_chain))


def _says_all(expr: m.Expr) -> bool:
    """Return whether the name of a setting contains a word such as `all` or `every`."""
    named = isinstance(expr, (m.Name, m.Attribute))
    return named and not _ALL.isdisjoint(last_name(expr).lower().split("_"))
