"""Collectives that only some ranks call, so that the other ranks hang.

The method is that of PARCOACH and MPI-Checker for C: a collective diverges
if it is control-dependent on a value that can differ between ranks, unless
the other branch calls the same one (https://doi.org/10.1177/1094342014552204).
"""

from __future__ import annotations

import functools
import operator
import re
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.loops import loops_in
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, TOP, ProcessSet, Runs, runs
from fsrace_lint.analysis.synchronization.divergence_causes import DivergenceCauses
from fsrace_lint.analysis.synchronization.early_exits import ways_out
from fsrace_lint.analysis.synchronization.model import CallSource, Divergence
from fsrace_lint.analysis.synchronization.sync_points import SyncPoints, serves, sync_points_of
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.analysis.values.call_arguments import arguments_of
from fsrace_lint.files.spans import Place
from fsrace_lint.program.symbols import package_of, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name, parts
from fsrace_lint.syntax.builtin_exceptions import handles, handles_any
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.accesses.confidence import Confidence
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, FlowResult
    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.synchronization.event_sequences import EventSequences, SequenceItem
    from fsrace_lint.analysis.synchronization.taint import RankTaint
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction

_PATH_NAME: Final = re.compile("path|dir|file|folder|name|ckpt|checkpoint")
_FILE_TESTS: Final = frozenset({"isfile", "is_file"})
_OTHER_END: Final = {"__enter__": "__exit__", "__exit__": "__enter__"}
_FAILING: Final = ("FileExistsError", "FileNotFoundError")
"""The exceptions that an access raises when it loses a race."""


class Divergences:
    """Finds the collectives of functions that some ranks skip."""

    def __init__(self, sequences: EventSequences) -> None:
        """Initialize for a project."""
        self.sequences = sequences
        self.flows = sequences.flows
        self.entry_states = sequences.entry_states
        self.taint = sequences.taint
        self.causes = DivergenceCauses(sequences)

    def of(self, function: LinkedFunction) -> Iterator[Divergence]:
        """Yield the collectives of a function that some of the ranks entering it skip.

        If ranks skip multiple collectives for the same reason, only the first is yielded, with the rest in
        `later`.
        """
        sync_points = list(sync_points_of(self.sequences.of(function)))
        muted = self.entry_states.muted_in(function) if sync_points else frozenset()
        sync_points = [sync_point for sync_point in sync_points if not self._returns(sync_point, muted)]
        flow = self.flows.flow(function) if sync_points else None
        if flow is None:
            return
        counted = SyncPoints((*sync_points, *self._other_end(function)), flow, self.entry_states)
        first: dict[Place, Divergence] = {}
        for sync_point in sync_points:
            if counted.is_of_one_process(sync_point, self.taint):
                continue
            ways = self._found(sync_point, flow, counted)
            found = next(ways, None)
            if found is not None and runs(self.entry_states.entry_state(function).processes) is Runs.ONE:
                ways = self._by_function(sync_point)
                found = next(ways, None)
            if found is not None and not found.certain:
                found = next((way for way in ways if way.certain), found)
            if found is not None:
                found = replace(found, certain=found.certain and sync_point.certain)
                known = first.get(found.place)
                if known is None or (found.certain, known.is_next) > (known.certain, found.is_next):
                    first[found.place] = found
                elif (
                    known.how == found.how
                    and found.how in {"branch", "loop"}
                    and known.sync_point.call_site is not sync_point.call_site
                ):
                    first[found.place] = replace(known, later=(*known.later, sync_point))
        yield from first.values()

    def _returns(self, sync_point: SequenceItem, muted: frozenset[str]) -> bool:
        """Return whether a sync point returns at once, because a helper mutes the collectives of its library.

        A call on the way to it that cannot be resolved counts as a muted one.
        """
        if not muted:
            return False
        called = (
            qualified_name(self.flows.resolver.symbol(call_site.call.function, call_site.state.scope))
            for call_site in (sync_point.call_site, *sync_point.call_chain, sync_point.leaf_call)
        )
        return any(name is None or package_of(name) in muted for name in called)

    def _other_end(self, function: LinkedFunction) -> Iterator[SequenceItem]:
        """Yield the sync points of `__exit__` if the function is `__enter__`, and vice versa."""
        name = _OTHER_END.get(function.facts.name)
        other = None if name is None or function.owner is None else function.owner.method(name)
        if other is not None:
            yield from sync_points_of(self.sequences.of(other))

    def _found(self, sync_point: SequenceItem, flow: FlowResult, counted: SyncPoints) -> Iterator[Divergence]:
        yield from self._in_first(sync_point)
        yield from self._by_tests(sync_point, flow, counted)
        yield from self._by_exits(sync_point, flow, counted)
        yield from self._by_loops(sync_point)
        yield from self._by_function(sync_point)
        yield from self._by_path(sync_point)

    def _in_first(self, sync_point: SequenceItem) -> Iterator[Divergence]:
        """Yield a sync point in a context that one process enters before the other ranks.

        The other ranks still wait to enter the context. Two such contexts, one in the other, are fine: each
        rank waits once in each.
        """
        context = self.entry_states.protection.serializer_entry(sync_point.call_site)
        nested = (
            self.sequences.catalog.find("first", self.sequences.name_of(sync_point.leaf_call)) is not None
        )
        if context is not None and not nested:
            place = Place(sync_point.file, context.span if isinstance(context, m.Call) else sync_point.span)
            yield Divergence(sync_point, "first", None, spell(context), place)

    def _by_tests(
        self, sync_point: SequenceItem, flow: FlowResult, counted: SyncPoints
    ) -> Iterator[Divergence]:
        """Yield a sync point in a branch, or after an exit, that only some ranks take."""
        for literal in reversed(sync_point.call_site.state.conditions):
            difference = self.taint.of_test(literal)
            if difference is None or (
                literal.branch is None
                and literal.attempt is None
                and (difference.kind != "rank" or difference.is_flag)
            ):
                continue
            by_rank = difference.kind == "rank"
            sides = list(counted.other_sides(sync_point, literal, stays=by_rank))
            further = self._further_check(sync_point, sides, counted) if by_rank else None
            if sides and further is None:
                continue
            if by_rank and (
                sync_point.is_of_group
                or (further is None and counted.is_balanced(sync_point))
                or self._is_idle(sync_point, literal)
            ):
                continue
            raises = literal.exit == "raise" or _others_raise(literal, flow)
            away = replace(literal, truth=not literal.truth) if raises else literal
            certain = self._counts(difference, [away], raises=raises, sync_point=sync_point)
            if certain is None:
                continue
            if by_rank:
                is_known = difference.is_between_ranks or difference.is_flag
                chosen = is_known or _is_first_or_rest(sync_point.arriving)
                certain = certain and chosen and not serves(sync_point, literal)
            elif difference.kind == "files":
                other_kind = counted.synchronizes_on_other_side(sync_point, literal)
                certain = certain and not other_kind and not self._is_misuse(sync_point, literal)
            how: Literal["branch", "exit"] = "exit" if literal.exit else "branch"
            yield self._told(sync_point, how, difference, further or literal, certain=certain, raises=raises)

    def _further_check(
        self, sync_point: SequenceItem, sides: Sequence[SequenceItem], counted: SyncPoints
    ) -> Tested | None:
        """Return the check of files or a clock without which the other ranks reach no matching sync point.

        Settings do not count: they would make every run hang.
        """
        for test in counted.further_tests(sync_point, sides):
            difference = self.taint.of_test(test)
            if difference is not None and difference.kind in {"files", "own"}:
                return test
        return None

    def _is_misuse(self, sync_point: SequenceItem, literal: Tested) -> bool:
        """Return whether a condition is `isfile` on a path that the function creates as a directory.

        No process creates a file there.
        """
        steps = self.sequences.of(sync_point.call_site.function)
        asked = next((step.path for step in steps if step.call_site.call is literal.test), None)
        if asked is None or last_name(literal.test) not in _FILE_TESTS:
            return False
        return any(step.operation is not None and step.op == "mkdir" and step.path == asked for step in steps)

    def _is_idle(self, sync_point: SequenceItem, literal: Tested) -> bool:
        """Return whether all ranks that reach a condition take the same branch, by earlier conditions."""
        conditions = sync_point.call_site.state.conditions
        coming = TOP
        for earlier in conditions[: conditions.index(literal)]:
            coming &= self.entry_states.deciding(earlier)
        return not coming & self.entry_states.deciding(replace(literal, truth=not literal.truth))

    def _by_exits(
        self, sync_point: SequenceItem, flow: FlowResult, counted: SyncPoints
    ) -> Iterator[Divergence]:
        """Yield a sync point after a nested branch in which some ranks leave the function or the loop."""
        for left in ways_out(sync_point, flow, counted):
            for literal in left.conditions:
                difference = self.taint.of_test(literal)
                if difference is None or counted.comes_by(sync_point, literal):
                    continue
                if difference.kind == "rank" and sync_point.is_of_group:
                    continue
                certain = self._counts(difference, left.conditions, raises=left.raises, sync_point=sync_point)
                if certain is not None:
                    certain = certain and left.certain
                    told = self._told(
                        sync_point, "exit", difference, literal, certain=certain, raises=left.raises
                    )
                    at_most = told.at_most
                    if left.ends_loop and literal.attempt is None:
                        at_most = self.causes.of_repeated_check(difference, sync_point.call_site.function)
                    at_most = min(at_most, self.causes.of_exit(left.conditions))
                    yield replace(told, at_most=at_most, is_next=left.is_next)

    def _counts(
        self, difference: RankTaint, conditions: Sequence[Tested], *, raises: bool, sync_point: SequenceItem
    ) -> bool | None:
        """Return whether ranks certainly skip a sync point, possibly (False), or not (None).

        Ranks that raise end the whole job sooner or later. They count only if they raise because a path
        exists, and certainly only if a rank check is among the conditions.
        """
        if difference.kind == "error":
            fails = self._fails(conditions, sync_point)
            return fails if not raises or self._is_alone(conditions) else None
        if not raises:
            return True
        found = [list(self._parts(li.test, li.scope, truth=li.truth)) for li in conditions]
        if not any(("files", True) in parts for parts in found):
            return None
        return ("files", True) in found[-1] and any(kind == "rank" for parts in found for kind, _ in parts)

    def _is_alone(self, conditions: Sequence[Tested]) -> bool:
        """Return whether one of the conditions is a rank check."""
        found = (self.taint.of_test(literal) for literal in conditions)
        return any(difference is not None and difference.kind == "rank" for difference in found)

    def _parts(self, test: m.Expr, scope: Environment, *, truth: bool) -> Iterator[tuple[str, bool]]:
        """Yield the kinds of taint in a condition, and whether the part means that a path exists.

        The second value is True if the part is not a filesystem operation.
        """
        bound = self.entry_states.rank_tests.known(test, scope) if isinstance(test, m.Name) else None
        if isinstance(bound, Expression):
            yield from self._parts(bound.expr, bound.scope, truth=truth)
        elif isinstance(test, m.Not):
            yield from self._parts(test.value, scope, truth=not truth)
        elif isinstance(test, m.Boolean):
            for value in test.values:
                yield from self._parts(value, scope, truth=truth)
        elif (difference := self.taint.of(test, scope)) is not None:
            operation = (
                self.sequences.accesses.effects.operation(test, scope) if isinstance(test, m.Call) else None
            )
            yield difference.kind, operation is None or truth

    def _fails(self, conditions: Sequence[Tested], sync_point: SequenceItem) -> bool | None:
        """Return whether the body of a `try` can fail on one rank only (None if not).

        The result is True if the body accesses the filesystem and the handler names only file errors. It is
        False if the handler also catches other errors, such as any exception or a missing module.
        """
        for literal in conditions:
            if literal.attempt is None:
                continue
            names = {last_name(part) for part in (literal.test, *parts(literal.test))}
            steps = self.sequences.of(sync_point.call_site.function)
            tried = [step for step in steps if _is_tried(step.call_site, literal.attempt)]
            if any(step.sync_point == sync_point.sync_point for step in tried):
                return None
            acts = any(step.operation is not None for step in tried)
            if acts and any(handles(names, error) for error in _FAILING):
                return not handles_any(names)
            in_handler = literal.truth and literal in sync_point.call_site.state.conditions
            if in_handler and handles(names, "ModuleNotFoundError"):
                return False
        return None

    def _by_loops(self, sync_point: SequenceItem) -> Iterator[Divergence]:
        """Yield a sync point in a loop whose number of iterations each rank determines by itself.

        If one process or one of each node gets there, they do not disagree with the other ranks in the loop.
        """
        if runs(sync_point.arriving) in {Runs.ONE, Runs.PER_NODE}:
            return
        function = sync_point.call_site.function
        for value in sync_point.call_site.loops:
            difference = self.taint.of_iterations(value, function)
            if difference is not None:
                place = Place(sync_point.file, _span(value.expr, function) or sync_point.span)
                at_most = self.causes.of_iterations(difference, function)
                yield Divergence(
                    sync_point,
                    "loop",
                    difference,
                    spell(value.expr),
                    place,
                    source=_source(difference, place),
                    at_most=at_most,
                )

    def _by_function(self, sync_point: SequenceItem) -> Iterator[Divergence]:
        """Yield a sync point in a function that only some ranks run, regardless of the caller.

        Hooks that a framework runs on some ranks are skipped, because overrides may be called elsewhere.
        """
        function = sync_point.call_site.function
        hook = self.entry_states.hooks.of(function)
        if hook is not None and hook.runs != "every":
            return
        allowed = self.entry_states.decorated(function)
        edges = self.entry_states.callers(function)
        if edges and all(edge.passed_as_callback for edge in edges):
            handed = functools.reduce(operator.or_, (edge.only for edge in edges))
            allowed &= handed
        if allowed not in {TOP, BOTTOM} and not sync_point.is_of_group:
            place = Place(sync_point.file, function.facts.span)
            yield Divergence(sync_point, "function", None, function.facts.name, place)

    def _by_path(self, sync_point: SequenceItem) -> Iterator[Divergence]:
        """Yield a collective save to a path that ranks derive from files, a clock, or a random number."""
        if not self.sequences.is_save(sync_point.call_site):
            return
        given = arguments_of(sync_point.call_site.call)
        for value in (value for _, name, value in given if _PATH_NAME.search(name or last_name(value))):
            difference = self.taint.of(value, sync_point.call_site.state.scope)
            if difference is not None and difference.kind in {"files", "own"}:
                yield Divergence(
                    sync_point, "path", difference, spell(value), Place(sync_point.file, sync_point.span)
                )

    def _told(
        self,
        sync_point: SequenceItem,
        how: Literal["branch", "exit"],
        difference: RankTaint,
        literal: Tested,
        *,
        certain: bool,
        raises: bool,
    ) -> Divergence:
        """Return the divergence for a condition."""
        place = Place(sync_point.file, _place_of(literal) or sync_point.span)
        raises = raises or literal.exit == "raise"
        any_error = difference.kind == "error" and not certain
        return Divergence(
            sync_point,
            how,
            difference,
            self._failing(literal, sync_point) or spell(literal.test),
            place,
            raises,
            certain or any_error,
            any_error,
            source=_source(difference, place),
            is_after_failure=literal.truth == (literal in sync_point.call_site.state.conditions),
            at_most=self._at_most(difference, literal, sync_point.call_site.function),
        )

    def _at_most(self, difference: RankTaint, literal: Tested, function: LinkedFunction) -> Confidence:
        """Return the highest confidence that a condition allows."""
        if literal.attempt is None:
            of_check = self.causes.of_repeated_check if literal.exit == "break" else self.causes.of_check
            return of_check(difference, function)
        steps = self.sequences.of(function)
        tried = [s for s in steps if s.operation is not None and _is_tried(s.call_site, literal.attempt)]
        return self.causes.of_error(literal, tried, function)

    def _failing(self, literal: Tested, sync_point: SequenceItem) -> str:
        """Return the call in a `try` that fails on some ranks: its first file access, or its first call."""
        if literal.attempt is None:
            return ""
        steps = self.sequences.of(sync_point.call_site.function)
        acts = [step.call_site for step in steps if step.operation is not None]
        tried = [*acts, *self.flows.call_sites(sync_point.call_site.function)]
        return next((spell(each.call) for each in tried if _is_tried(each, literal.attempt)), "")


def _is_first_or_rest(processes: ProcessSet) -> bool:
    """Return whether a set contains either the main process or the remaining ranks (`REST`), not both."""
    return bool(processes & ProcessSet.MAIN) != bool(processes & ProcessSet.REST)


def _others_raise(literal: Tested, flow: FlowResult) -> bool:
    """Return whether the ranks that take the other branch raise there."""
    if literal.branch is None:
        return False
    ends = (way.state.conditions[-1:] for way in flow.exceptional_exits)
    return any(end.branch is literal.branch and end.truth != literal.truth for (end,) in filter(None, ends))


def _source(difference: RankTaint, decides: Place) -> CallSource | None:
    """Return the call whose result differs between ranks, if it is outside the deciding condition."""
    source = difference.source
    if source is None or not isinstance(source.expr, m.Call):
        return None
    place = Place(source.scope.function.module.path, source.expr.span)
    is_in_test = place.path == decides.path and decides.span.covers(place.span)
    return None if is_in_test else CallSource(spell(source.expr), place)


def _is_tried(call_site: CallSite, attempt: m.Try) -> bool:
    return any(net.handlers is attempt.handlers for net in call_site.exception_contexts)


def _place_of(literal: Tested) -> Span | None:
    if literal.branch is not None:
        return literal.branch.span
    handlers = () if literal.attempt is None else literal.attempt.handlers
    return next(
        (h.span for h in handlers if h.caught is literal.test), handlers[0].span if handlers else None
    )


def _span(over: m.Expr, function: LinkedFunction) -> Span | None:
    """Return the span of the iterable or the test of a loop, if the loop is a statement."""
    for loop in loops_in(function.facts.body):
        if over is (loop.test if isinstance(loop, m.While) else loop.iterable):
            return loop.span
    return None
