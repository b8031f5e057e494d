"""The sync points of one function, and which of them match on different branches."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import ANOTHER, BOTTOM, TOP, TWO, ProcessSet
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import unnegated
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import FlowResult
    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.synchronization.event_sequences import SequenceItem

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
        self._ways = (*flow.exits, *flow.exceptional_exits)
        self._positions = {call_site: position for position, call_site in enumerate(flow.call_sites)}
        for sync_point in sync_points:
            self._meetings[sync_point.sync_point].append(sync_point)

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

    def has_other_side(self, sync_point: SequenceItem, literal: Tested, *, stays: bool) -> bool:
        """Return whether the ranks with the opposite result of a condition reach a matching sync point.

        That sync point is in the other branch, after the opposite condition, or after a branch that leaves
        the function following its own sync point.

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
            if mutually_exclusive([literal], others) or any(
                _is_opposite(literal, theirs, stays=stays) or (stays and self._completes(literal, theirs))
                for theirs in others
            ):
                return True
            if (
                leaves is not None
                and self._positions.get(other.call_site, -1) >= leaves
                and literal not in others
            ):
                return True
        return False

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


def _plain(tested: Tested) -> tuple[m.Expr, bool]:
    """Return a condition without its negation, and the matching result."""
    test, truth = unnegated(tested.test, truth=tested.truth)
    if isinstance(test, m.Compare) and len(test.operators) == 1 and test.operators[0] in _POSITIVE:
        return m.Compare(test.left, (_POSITIVE[test.operators[0]],), test.rights), not truth
    return test, truth
