"""What happens in a function, in order: acts on the filesystem, and where processes meet.

Each function's sequence is found once. The calls of it that lead to others of
the project are replaced by what happens there, as it looks from the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import AtCall
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.callgraph.reaching_functions import reaching_functions
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.dataflow.process_set import MAIN, SYNCHRONIZING, TOP, ProcessSet
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
    from fsrace_lint.catalog import Op
    from fsrace_lint.catalog.entries import CollectiveSaver
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 4
_LONGEST: Final = 200
_KINDS: Final = frozenset({"hasattr", "isinstance", "issubclass", "callable"})
_LEADING: Final = (*SYNCHRONIZING, "effect", "program", "run-once", "decorator", "first", "lock")


class SequenceItem(AtCall, Record, frozen=True, eq=False):
    """One thing that happens in a function: an act, or a meeting of all processes.

    `call_site` is the call in the function whose sequence it belongs to, `leaf_call` the
    one that does it. `arriving` are those that come to the call, of all that enter the
    function, and `processes` those of them that do it; `conditions` is what was tested
    before it, from `call_site` down to `leaf_call`. A meeting has its `sync_point`, by which
    all must call the same; it is `certain` where nothing decides over it but whether
    there are several processes at all. `held` are the locks that are held there.
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

    @property
    def op(self) -> Op | None:
        """What it does; None for a meeting."""
        return None if self.operation is None else self.operation.op

    @property
    def is_for_main(self) -> bool:
        """Whether the main process comes here."""
        return bool(self.arriving & MAIN)


class EventSequences:
    """The sequences of a project's functions, each found once."""

    def __init__(self, accesses: Accesses, differences: TaintAnalysis) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.accesses = accesses
        self.flows = accesses.flows
        self.catalog = accesses.flows.catalog
        self.entry_states = accesses.entry_states
        self.taint = differences
        self.budget = DepthBudget(_DEEPEST, CycleDetector())

    def may_reach_sync_point(self, function: LinkedFunction) -> bool:
        """Tell whether anything can happen in a function, or in what it calls."""
        return function in self._leading.functions

    def of(self, function: LinkedFunction, depth: int = 0) -> tuple[SequenceItem, ...]:
        """Give what happens in a function and in what it calls, in order."""
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
    def _items(self, function: LinkedFunction) -> tuple[SequenceItem | tuple[CallSite, LinkedFunction], ...]:
        """Give the steps that stand in a function, and the calls in it of others that may have some."""
        call_sites = self.flows.call_sites(function)
        return tuple(item for call_site in call_sites for item in self._read(call_site))

    def _read(self, call_site: CallSite) -> Iterator[SequenceItem | tuple[CallSite, LinkedFunction]]:
        called = last_name(call_site.call.function)
        if called not in self._leading.names:
            return
        scope = call_site.state.scope
        sync_point, certain = self._meeting(call_site)
        if sync_point:
            yield replace(self._here(call_site), sync_point=sync_point, certain=certain)
            return
        operation = self.accesses.operation(call_site)
        if operation is not None:
            done = replace(
                self._here(call_site),
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
            yield call_site, callee
            after = self.entry_states.synchronizes_after(callee)
            if after:
                yield replace(self._here(call_site), sync_point=after)

    def _here(self, call_site: CallSite) -> SequenceItem:
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

    def _inlined(self, call_site: CallSite, callee: LinkedFunction, depth: int) -> Iterator[SequenceItem]:
        """Give what happens in a function, as it looks from a call of it."""
        steps = self.of(callee, depth + 1)
        if not steps:
            return
        here = self._here(call_site)
        allowed = here.processes & self.entry_states.decorated(callee)
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
                certain=step.certain and (not step.sync_point or self._is_certain(step)),
            )

    def _is_ruled_out(self, inner: CallSite, call_site: CallSite, callee: LinkedFunction) -> bool:
        """Tell whether a call passes a constant by which it never comes to another in the function."""
        if is_infeasible(call_site, callee, inner.state):
            return True
        first = self.catalog.find("first", self.name_of(inner))
        if first is None or not first.rank:
            return False
        rank = library_argument(inner.call, first.rank)
        value = None if rank is None else constant_passed(rank, call_site.call, callee)
        return value is not None and isinstance(value.value, int) and value.value < 0

    def name_of(self, call_site: CallSite) -> str:
        """Name what is called as the catalog does."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        return self.flows.resolver.type_name(entity) or f"*.{last_name(call_site.call.function)}"

    def _meeting(self, call_site: CallSite) -> tuple[str, bool]:
        """Name what a call waits for the others in, empty where it does not; and whether it always does."""
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
        synchronizes = self.catalog.is_any(SYNCHRONIZING, name) and (
            always or not _gives_loaders(call_site.call)
        )
        return called if synchronizes else "", always

    def access(self, step: SequenceItem) -> Access | None:
        """Give the site of what happens in a function; None for what is no act."""
        operation, seen = step.operation, self.accesses.access_with_path
        return (
            None
            if operation is None
            else seen(operation, step.call_site, step.leaf_call, step.path, step.processes)
        )

    def is_save(self, call_site: CallSite) -> bool:
        """Tell whether a call saves what all processes hold, each its part, under one path."""
        return self.catalog.find("collective-saver", self.name_of(call_site)) is not None

    def _is_certain(self, step: SequenceItem) -> bool:
        """Tell whether nothing decides over a meeting but whether there are several processes."""
        return all(self._is_about_setup(literal) for literal in step.call_site.state.conditions)

    def _is_about_setup(self, literal: PathCondition) -> bool:
        """Tell whether a test asks for several processes, or only what kind of object there is."""
        if isinstance(literal.test, m.Call) and last_name(literal.test.function) in _KINDS:
            return True
        return self.entry_states.rank_tests.partition(literal.test, literal.scope) != (TOP, TOP)

    @lazy
    def _leading(self) -> ReachingFunctions:
        """The functions that may lead to an act or a meeting, as far as that is followed."""
        return reaching_functions(self.entry_states, _LEADING, _DEEPEST + 1)


def _gives_loaders(call: m.Call) -> bool:
    """Tell whether all that a call is given are loaders of data, by their names: no model to divide."""
    given = [last_name(value).lower() for _, _, value in arguments_of(call)]
    return bool(given) and all(name.endswith("loader") for name in given)
