"""The context of an access: the processes that run it, what serializes them, and how its path is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.accesses.path_ownership import PathOwnership
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.process_set import FIRST, TOP, runs
from fsrace_lint.analysis.paths.work_items import Share
from fsrace_lint.engine.query import lazy
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, unnegated

if TYPE_CHECKING:
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


class AccessContexts:
    """Computes the parts of access contexts that depend on callers."""

    def __init__(self, evidence: ConcurrencyEvidence, storage: Storage) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.evidence = evidence
        self.entry_states = entry_states = evidence.entry_states
        self.ownership = PathOwnership(entry_states)
        self._guards = entry_states.rank_tests
        self._paths, self._storage = entry_states.paths, storage

    def first_let_in(self, call_site: CallSite) -> str | None:
        """Return the scope whose rank 0 reaches a call before the other ranks, or None."""
        function = call_site.function
        return (
            self.entry_states.protection.serializing_context(call_site)
            or self.entry_states.entry_state(function).first
        )

    def acting(self, operation: Operation, call_site: CallSite) -> ProcessSet:
        """Return the processes that run an operation, of those that reach the call."""
        processes = self.entry_states.processes(call_site)
        if operation.only is not None:
            processes &= FIRST[operation.only]
        if operation.condition is not None:
            processes &= self._guards.partition(operation.condition, call_site.state.scope)[0]
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
            return self.callee_access.own & self.contexts.entry_states.processes(self.call_site)
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
        """Whether an interprocess lock is held."""
        entry_states = self.contexts.entry_states
        below = self.callee_access is not None and self.callee_access.locked
        here = below or entry_states.protection.locked(self.call_site)
        return here or entry_states.entry_state(self.call_site.function).locked

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
        return certain and not any(map(self.contexts.is_opened, {self.call_site, self.leaf_call}))

    @property
    def trace(self) -> ConcurrencyTrace:
        """The call chain by which multiple processes reach the function of the call site."""
        return self.contexts.evidence.trace(self.call_site)


def _says_all(expr: m.Expr) -> bool:
    """Return whether the name of a setting contains a word such as `all` or `every`."""
    named = isinstance(expr, (m.Name, m.Attribute))
    return named and not _ALL.isdisjoint(last_name(expr).lower().split("_"))
