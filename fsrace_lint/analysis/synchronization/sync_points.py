"""The sync points of one function, and which of them match on different branches."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import ANOTHER, BOTTOM, MAIN, TOP, TWO, ProcessSet
from fsrace_lint.analysis.synchronization.event_sequences import FAILING
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import implied, unnegated
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import FlowResult, LoopExit
    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.synchronization.event_sequences import SequenceItem
    from fsrace_lint.analysis.synchronization.taint import TaintAnalysis

_KINDS: Final = tuple(kind for kind in ProcessSet if kind)
_POSITIVE: Final = {"!=": "==", "is not": "is", "not in": "in", ">": "<=", ">=": "<"}


class SyncPoints:
    """The sync points of a function, counted for each kind of process."""

    def __init__(
        self, sync_points: Iterable[SequenceItem], flow: FlowResult, entry_states: EntryStates
    ) -> None:
        """Group the sync points by what must match.

        Args:
            sync_points: The sync points of a function.
            flow: The result of analyzing that function.
            entry_states: Determines the ranks for which a condition is true.
        """
        self._entry_states = entry_states
        self._meetings: dict[str, list[SequenceItem]] = defaultdict(list)
        jumps = (way for way in flow.loop_exits if way.how)
        self._ways = (*flow.exits, *flow.exceptional_exits, *jumps)
        self._positions = {call_site: position for position, call_site in enumerate(flow.call_sites)}
        for sync_point in sync_points:
            self._meetings[sync_point.sync_point].append(sync_point)

    def is_of_one_process(self, sync_point: SequenceItem, taint: TaintAnalysis) -> bool:
        """Return whether a sync point is only reached in a job of a single process.

        A test on the way says so: `if local_rank == -1 and evaluate:`. A rank check does not.
        """
        partition = self._entry_states.rank_tests.partition
        for literal in sync_point.conditions:
            for test, truth in implied(literal.test, truth=literal.truth):
                is_alone = partition(test, literal.scope)[:: 1 if truth else -1] == (MAIN, TOP)
                if is_alone and taint.of(test, literal.scope) is None:
                    return True
        return False

    def is_balanced(self, sync_point: SequenceItem) -> bool:
        """Return whether every rank reaches the same number of sync points of this kind.

        `ANOTHER` may or may not be first on its node. It counts only if a check selects it.
        """
        if sync_point.processes == TOP:
            return False
        same = self._meetings[sync_point.sync_point]
        picked = any(other.processes in {ANOTHER, TWO} for other in same)
        kinds = [kind for kind in _KINDS if kind != ANOTHER or picked]
        return len({sum(bool(kind & other.processes) for other in same) for kind in kinds}) == 1

    def other_sides(
        self, sync_point: SequenceItem, literal: Tested, *, stays: bool
    ) -> Iterator[SequenceItem]:
        """Yield the matching sync points that ranks with the opposite result of a condition reach.

        They are in the other branch, after the opposite condition, or after a branch that leaves the function
        following its own sync point.

        Args:
            sync_point: The sync point.
            literal: The condition.
            stays: Whether the condition has the same result when evaluated again. If False, a condition that
                contains a call does not match its opposite.
        """
        leaves = self._leaves_after(sync_point)
        for other in self._meetings[sync_point.sync_point]:
            others = other.call_site.state.conditions
            if other is sync_point:
                continue
            is_opposite = mutually_exclusive([literal], others) or any(
                _is_opposite(literal, theirs, stays=stays) or (stays and self._completes(literal, theirs))
                for theirs in others
            )
            is_later = leaves is not None and self._positions.get(other.call_site, -1) >= leaves
            if is_opposite or (is_later and literal not in others):
                yield other

    def further_tests(self, sync_point: SequenceItem, sides: Sequence[SequenceItem]) -> tuple[Tested, ...]:
        """Return the tests without which the other ranks reach no matching sync point.

        Args:
            sync_point: The sync point.
            sides: The matching sync points of the other ranks.

        Returns:
            The tests; empty if the other ranks always reach one of the sync points.
        """
        own = {_spelled(each) for each in self._plain_tests(sync_point)}
        found = [[each for each in self._plain_tests(side) if _spelled(each) not in own] for side in sides]
        texts = {_spelled(each) for tests in found for each in tests}
        are_complete = any((text, not truth) in texts for text, truth in texts)
        return () if are_complete or not all(found) else tuple(each for tests in found for each in tests)

    def _plain_tests(self, sync_point: SequenceItem) -> Iterator[Tested]:
        """Yield the tests before a sync point that are not about ranks; `a and b` is two tests."""
        tests = [each for each in sync_point.call_site.state.conditions if each.exit not in FAILING]
        while tests:
            each = tests.pop()
            test, truth = unnegated(each.test, truth=each.truth)
            if isinstance(test, m.Boolean) and (test.operator == "and") == truth:
                tests += [replace(each, test=value, truth=truth) for value in test.values]
            elif each.attempt is None and self._entry_states.deciding(each) == TOP:
                yield replace(each, test=test, truth=truth)

    def _completes(self, literal: Tested, other: Tested) -> bool:
        """Return whether two rank checks together select every rank once."""
        one, two = self._entry_states.deciding(literal), self._entry_states.deciding(other)
        return one != TOP and one | two == TOP and not one & two & ~ANOTHER

    def _leaves_after(self, sync_point: SequenceItem) -> int | None:
        """Return the position at which all ranks that reach a sync point leave the function, or None."""
        conditions, position = sync_point.call_site.state.conditions, self._positions[sync_point.call_site]
        left = (way.position for way in self._ways if way.state.conditions == conditions)
        return min((way for way in left if way > position), default=None)

    def synchronizes_on_other_side(self, sync_point: SequenceItem, literal: Tested) -> bool:
        """Return whether the ranks in the other branch reach a sync point of any kind.

        If so, the condition likely selects what to do, not whether to synchronize.
        """
        others = (
            other for several in self._meetings.values() for other in several if other is not sync_point
        )
        return any(mutually_exclusive([literal], other.call_site.state.conditions) for other in others)

    def comes_by(self, sync_point: SequenceItem, literal: Tested) -> bool:
        """Return whether the ranks that leave under a condition have passed a matching sync point before."""
        others = (other for other in self._meetings[sync_point.sync_point] if other is not sync_point)
        return any(literal in other.call_site.state.conditions for other in others)

    def meets_later(self, sync_point: SequenceItem, way: LoopExit) -> bool:
        """Return whether ranks that end an iteration reach another matching sync point after it.

        After a `break`, it is behind the loop, or in the next iteration of a loop around it. After a
        `continue`, it is in the next iteration.
        """
        loops = sync_point.call_site.loops
        around = loops[: loops.index(way.loop) + (way.how == "continue")]
        for other in self._meetings[sync_point.sync_point]:
            if other is sync_point or mutually_exclusive(
                way.state.conditions, other.call_site.state.conditions
            ):
                continue
            is_behind = way.how == "break" and way.loop not in other.call_site.loops
            if is_behind and self._positions.get(other.call_site, -1) >= way.position:
                return True
            if any(loop in other.call_site.loops for loop in around):
                return True
        return False


def sync_points_of(steps: Iterable[SequenceItem]) -> Iterator[SequenceItem]:
    """Yield the calls at which all ranks that reach them synchronize.

    The call is a sync point itself or reaches one.
    """
    groups = itertools.groupby((step for step in steps if step.sync_point), key=lambda step: step.call_site)
    for _, group in groups:
        several = list(group)
        met: dict[str, ProcessSet] = defaultdict(lambda: BOTTOM)
        for step in several:
            met[step.sync_point] |= step.processes
        whole = [step for step in several if met[step.sync_point] == step.arriving]
        if whole:
            best = next((step for step in whole if step.certain), whole[0])
            yield replace(best, processes=best.arriving)


def serves(sync_point: SequenceItem, literal: Tested) -> bool:
    """Return whether ranks wait in an endless loop in a branch for what the main process sends.

    The main process may synchronize with them in a function that a library calls for each request.
    """
    inner = sync_point.conditions[sync_point.conditions.index(literal) + 1 :]
    is_endless = any(isinstance(each.test, m.Constant) and each.truth for each in inner)
    return is_endless and not sync_point.is_for_main


def _is_opposite(one: Tested, other: Tested, *, stays: bool) -> bool:
    """Return whether two conditions are the same test with opposite results."""
    if one.attempt is not None or other.attempt is not None:
        return False
    (test, truth), (others, other_truth) = _plain(one), _plain(other)
    text = spell(test)
    return truth != other_truth and text == spell(others) and "…" not in text and (stays or "(" not in text)


def _spelled(tested: Tested) -> tuple[str, bool]:
    test, truth = _plain(tested)
    return spell(test), truth


def _plain(tested: Tested) -> tuple[m.Expr, bool]:
    """Return a condition without its negation, and the matching result."""
    test, truth = unnegated(tested.test, truth=tested.truth)
    if isinstance(test, m.Compare) and len(test.operators) == 1 and test.operators[0] in _POSITIVE:
        return m.Compare(test.left, (_POSITIVE[test.operators[0]],), test.rights), not truth
    return test, truth
