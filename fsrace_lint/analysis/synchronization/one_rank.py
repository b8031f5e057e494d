"""Whether an operation can be left to rank 0, and whether every rank reaches a place to wait for it."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.model import ASKING, LOOKING
from fsrace_lint.analysis.callgraph.concurrency import Doubt, Evidence
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import TOP, Runs
from fsrace_lint.catalog.lexicon import says
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import calls_in, last_name
from fsrace_lint.syntax.builtin_exceptions import is_os_error
from fsrace_lint.syntax.traversal import all_in, children, evaluated, within
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction

_USING: Final = ASKING - LOOKING
_ITEMS: Final = frozenset({"__getitem__", "__iter__", "__next__", "__del__"})
"""The methods that data loader workers or the garbage collector call."""
_ALIKE: Final = frozenset({"bool", "callable", "getattr", "hasattr", "isinstance", "issubclass", "len"})
"""Calls that return the same on every rank if their arguments are the same."""

_GATHERS: Final = re.compile(r"gather|reduce|merge", re.IGNORECASE)


class OneRank:
    """Finds the reasons against a rank check around an operation, and against a barrier after it."""

    def __init__(self, sequences: EventSequences) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.sequences = sequences
        self.entry_states = sequences.entry_states
        self.evidence = sequences.accesses.evidence

    def why_not_checked(self, access: Access) -> str:
        """Return why an operation cannot be left to rank 0, or an empty string."""
        leaf = access.leaf_call
        if access.runs is not Runs.MANY:
            return "only some of the ranks get here"
        if access.evidence < Evidence.LIKELY or access.doubt is not Doubt.NONE:
            return "it is not certain that ranks of one job run it"
        reasons = (
            self._why_no_ranks(access.call_site),
            "each rank can have other items of the work" if _is_divided(access) else "",
            "every rank uses the result of the call" if self.is_result_used(access) else "",
            *(self._why_own_part(access, each) for each in dict.fromkeys((access.call_site, leaf))),
        )
        return next(filter(None, reasons), "")

    def is_result_used(self, access: Access) -> bool:
        """Return whether the call that runs an operation is a part of a statement that does more."""
        return _is_used(access.leaf_call)

    def is_read_by_callers(self, access: Access) -> bool:
        """Return whether a caller reads what an access writes, after the call that leads to the access."""
        return any(
            self._is_read_after(edge.call_site, access.leaf_call)
            for edge in self.entry_states.callers(access.call_site.function)
        )

    def is_read_here(self, access: Access) -> bool:
        """Return whether the function of an access reads what it writes later, before ranks wait.

        It can also return the path, or store it in an object, for others to read.
        """
        return _is_handed_on(access) or self._is_read_after(access.call_site, access.leaf_call)

    def _is_read_after(self, call_site: CallSite, leaf: CallSite) -> bool:
        made, is_own = None, call_site is leaf
        for step in self.sequences.of(call_site.function):
            if step.call_site is call_site and step.leaf_call is leaf:
                made = step.path
            elif made is None or (step.call_site is call_site and not is_own):
                continue
            elif step.sync_point and step.processes == TOP:
                return False
            elif step.op in _USING and step.path is not None and _may_be(step.path, made):
                return True
        return False

    def why_no_barrier(self, call_site: CallSite, check: Span | None = None) -> str:
        """Return why a rank might not reach a barrier next to a call, or an empty string.

        Args:
            call_site: The call.
            check: The rank check around the call. The barrier is outside of its branch.
        """
        function = call_site.function
        if function.facts.is_generator or function.facts.name in _ITEMS:
            return f"`{function.facts.name}()` does not run equally often on every rank"
        if not self._is_by_ranks(function) and not all(
            self._is_by_ranks(edge.call_site.function) for edge in self.entry_states.callers(function)
        ):
            return "it is not certain that all ranks get here together"
        if self.entry_states.protection.held(call_site):
            return "a lock is held here, and the other ranks would wait for it"
        if call_site.exception_contexts:
            return "a rank that fails here would skip the barrier, and the exception is handled"
        outside = _outside(call_site.state.conditions, check)
        for condition in outside:
            if condition.attempt is not None or not self._is_alike(condition):
                return f"ranks can disagree on `{spell(condition.test)}`"
        if any(not _counts(loop.expr) for loop in call_site.loops):
            return "the loop can run a different number of times on each rank"
        return next(filter(None, map(self._why_not_by, self._edges_above(function))), "")

    def _is_by_ranks(self, function: LinkedFunction) -> bool:
        """Return whether a function itself checks the rank, waits for ranks, or joins a job."""
        markers = self.evidence.markers
        return any(marker.role == "rank" and not marker.is_launch for marker, _ in markers.of(function))

    def _is_alike(self, condition: PathCondition) -> bool:
        if self.sequences.taint.of_test(condition) is not None:
            return False
        return all(
            last_name(call.function) in _ALIKE or self._is_about_job(call, condition)
            for call in calls_in(condition.test)
        )

    def _is_about_job(self, call: m.Call, condition: PathCondition) -> bool:
        return self.entry_states.rank_tests.partition(call, condition.scope) != (TOP, TOP)

    def _why_not_by(self, edge: CallEdge) -> str:
        call_site = edge.call_site
        called = spell(call_site.call.function)
        taint = self.sequences.taint
        if not self._is_by_all(edge):
            return f"only some ranks call `{called}()`"
        if any(map(is_os_error, self.entry_states.protection.caught(call_site))):
            return f"a caller handles the exception of a rank that fails in `{called}()`"
        conditions = (each for each in call_site.state.conditions if each.attempt is None)
        if any(taint.of_test(each) is not None for each in conditions) or any(
            taint.of_iterations(loop, call_site.function) is not None for loop in call_site.loops
        ):
            return f"ranks can disagree on whether to call `{called}()`"
        return ""

    def _edges_above(self, function: LinkedFunction) -> Iterator[CallEdge]:
        callers = self.entry_states.callers
        for each in self.entry_states.upward(function, callers):
            yield from callers(each)

    def _why_no_ranks(self, call_site: CallSite) -> str:
        """Return why some callers of a function may not be ranks of a job, or an empty string."""
        markers, waiting = self.evidence.markers, [call_site]
        above = self.entry_states.upward(call_site.function, self.entry_states.callers)
        roots = [each for each in above if not self.entry_states.callers(each)]
        if self.evidence.is_library(call_site.function, roots):
            return "only examples of the library show that ranks run it"
        seen = {call_site.function}
        while waiting:
            here = waiting.pop()
            function = here.function
            name = f"`{function.facts.name}()`" if function.index else "the code of the module"
            if markers.drivers.is_driver(function):
                return f"{name} starts the other processes"
            found = [marker for marker, before in markers.of(function) if _agree(before, here)]
            if any(marker.role == "worker" for marker in found) or function.facts.name in _ITEMS:
                return f"workers run {name}, which are not the ranks of a job"
            edges = self.entry_states.callers(function)
            if not all(map(self._is_by_all, edges)):
                return f"some callers of {name} check the rank already"
            if any(not marker.is_launch for marker in found):
                continue
            if not edges and not self._is_shown_by_class(function):
                return f"nothing shows that every caller of {name} is a rank of a job"
            waiting += [edge.call_site for edge in edges if edge.call_site.function not in seen]
            seen |= {edge.call_site.function for edge in edges}
        return ""

    def _is_by_all(self, edge: CallEdge) -> bool:
        """Return whether all ranks that get to the caller take a call edge."""
        return edge.starts_several or (self.entry_states.processes(edge.call_site) & edge.only) == TOP

    def _is_shown_by_class(self, function: LinkedFunction) -> bool:
        """Return whether another method of the class checks the rank or coordinates ranks."""
        owner = function.owner
        return owner is not None and any(map(self.evidence.markers.ordered, owner.methods.values()))

    def _why_own_part(self, access: Access, call_site: CallSite) -> str:
        """Return why each rank may write its own part of the data, or an empty string."""
        function, path = call_site.function, access.operation.path
        steps = itertools.takewhile(lambda step: step.call_site is not call_site, self.sequences.of(function))
        if any(step.sync_point and _GATHERS.search(step.sync_point) for step in steps):
            return ""
        names = (last_name(part) for each in _written(function, call_site) for part in _except(each, path))
        tests = (last_name(part) for each in call_site.state.conditions for part in within(each.test))
        file = (
            access.path_source.rpartition("/")[2]
            if access.path is None
            else access.path.text.rpartition("/")[2]
        )
        if any(says(name, "divided") for name in (file, function.facts.name, *names, *tests)):
            return "each rank can have its own part of the data, which must be gathered first"
        return ""


def _agree(before: Iterable[PathCondition], call_site: CallSite) -> bool:
    return not mutually_exclusive(tuple(before), call_site.state.conditions)


def _may_be(path: AbstractPath, made: AbstractPath) -> bool:
    """Return whether a path may be a path that was written: it is in it, or the file has the same name."""
    return path.is_within(made) or (made.has_literal_name and path.components[-1:] == made.components[-1:])


def _is_handed_on(access: Access) -> bool:
    """Return whether the function of an access returns its path, or stores it in an object."""
    for statement in all_in(access.call_site.function.facts.body):
        told = isinstance(statement, m.Assign) and any(
            isinstance(target, (m.Attribute, m.Subscript)) for target in statement.targets
        )
        parts: list[m.Expr] = []
        if isinstance(statement, m.Assign) and told:
            parts = [*statement.targets, *within(statement.value)]
        elif isinstance(statement, m.Return):
            parts = list(within(statement.value))
        if any(spell(part) == access.path_source for part in parts):
            return True
    return False


def _is_divided(access: Access) -> bool:
    """Return whether a loop over data gives each round another path, or the path names an item of it."""
    if access.path is None or access.path.has_work_item:
        return True
    for call_site in access.inlined_chain:
        if any(not _counts(loop.expr) for loop in call_site.loops) and not access.is_repeated:
            return True
    return False


def _is_used(call_site: CallSite) -> bool:
    """Return whether a call is a part of a statement that does more: its result is kept, or decides."""
    for statement in all_in(call_site.function.facts.body):
        if isinstance(statement, (m.Evaluate, m.With)):
            own = statement.items if isinstance(statement, m.With) else ()
            opened = (part for item in own for part in within(item.context))
            done = (statement.value,) if isinstance(statement, m.Evaluate) else ()
            if any(each is call_site.call for each in (*done, *opened)):
                return False
    return True


def _counts(loop: m.Expr) -> bool:
    """Return whether a loop only counts, or iterates over a literal."""
    if isinstance(loop, m.Sequence):
        return True
    return isinstance(loop, m.Call) and last_name(loop.function) in {"range", "trange"}


def _outside(conditions: tuple[PathCondition, ...], check: Span | None) -> tuple[PathCondition, ...]:
    """Return the conditions outside of a check."""
    for index, each in enumerate(conditions):
        if check is not None and each.branch is not None and each.branch.span == check:
            return conditions[:index]
    return conditions


def _written(function: LinkedFunction, call_site: CallSite) -> Iterator[m.Expr]:
    """Yield what a call writes: its arguments, and those of the calls in the `with` block that it opens."""
    yield call_site.call
    for statement in all_in(function.facts.body):
        if isinstance(statement, m.With) and any(
            part is call_site.call for item in statement.items for part in within(item.context)
        ):
            for inner in all_in(statement.body):
                yield from filter(None, evaluated(inner))


def _except(expr: m.Expr, left_out: m.Expr) -> Iterator[m.Expr]:
    """Yield the parts of an expression, without one of them."""
    if expr is not left_out:
        yield expr
        for child in children(expr):
            yield from _except(child, left_out)
