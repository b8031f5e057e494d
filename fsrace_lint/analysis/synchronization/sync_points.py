"""The meetings of one function: which of them stand in for which, on other ways through it."""

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
    """The meetings of a function, counted for each kind of process."""

    def __init__(
        self, sync_points: Iterable[SequenceItem], flow: FlowResult, entry_states: EntryStates
    ) -> None:
        """Sort the meetings of the function that `flow` is of; `entry_states` tells who sees a test so."""
        self._entry_states = entry_states
        self._meetings: dict[str, list[SequenceItem]] = defaultdict(list)
        self._ways = (*flow.exits, *flow.exceptional_exits)
        self._positions = {call_site: position for position, call_site in enumerate(flow.call_sites)}
        for sync_point in sync_points:
            self._meetings[sync_point.sync_point].append(sync_point)

    def is_balanced(self, sync_point: SequenceItem) -> bool:
        """Tell whether every process comes to as many meetings of this kind, each on its own way.

        ANOTHER may be the first of its node and may be not: it counts where a test picks it.
        """
        if sync_point.processes == TOP:
            return False
        same = self._meetings[sync_point.sync_point]
        picked = any(other.processes in {ANOTHER, TWO} for other in same)
        kinds = [kind for kind in _KINDS if kind != ANOTHER or picked]
        return len({sum(bool(kind & other.processes) for other in same) for kind in kinds}) == 1

    def has_other_side(self, sync_point: SequenceItem, literal: Tested, *, stays: bool) -> bool:
        """Tell whether those whose test comes out otherwise come to such a meeting there.

        It stands in the other branch, behind the same test the other way round, or
        behind a branch that is left after its meeting. A test with a call in it may
        come out otherwise the next time, unless its answer `stays`.
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
        """Tell whether two rank tests let through everybody together, and nobody twice."""
        one, two = self._entry_states.deciding(literal), self._entry_states.deciding(other)
        return one != TOP and one | two == TOP and not one & two & ~ANOTHER

    def _leaves_after(self, sync_point: SequenceItem) -> int | None:
        """Give the position at which all who come to a meeting leave the function, if they do."""
        conditions, position = sync_point.call_site.state.conditions, self._positions[sync_point.call_site]
        left = (way.position for way in self._ways if way.state.conditions == conditions)
        return min((way for way in left if way > position), default=None)

    def synchronizes_on_other_side(self, sync_point: SequenceItem, literal: Tested) -> bool:
        """Tell whether those come to a meeting too, of another kind: the test asks what is to be done."""
        others = (
            other for several in self._meetings.values() for other in several if other is not sync_point
        )
        return any(mutually_exclusive([literal], other.call_site.state.conditions) for other in others)

    def comes_by(self, sync_point: SequenceItem, literal: Tested) -> bool:
        """Tell whether those who leave have come by such a meeting before."""
        others = (other for other in self._meetings[sync_point.sync_point] if other is not sync_point)
        return any(literal in other.call_site.state.conditions for other in others)


def sync_points_of(steps: Iterable[SequenceItem]) -> Iterator[SequenceItem]:
    """Give the calls by which all who come there meet, the call itself or one that it leads to."""
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


def _is_opposite(one: Tested, other: Tested, *, stays: bool) -> bool:
    """Tell whether a test came out one way here, and there the same test the other way."""
    if one.attempt is not None or other.attempt is not None:
        return False
    (test, truth), (others, other_truth) = _plain(one), _plain(other)
    text = spell(test)
    return truth != other_truth and text == spell(others) and "…" not in text and (stays or "(" not in text)


def _plain(tested: Tested) -> tuple[m.Expr, bool]:
    """Write a test without negation, and how it came out then."""
    test, truth = unnegated(tested.test, truth=tested.truth)
    if isinstance(test, m.Compare) and len(test.operators) == 1 and test.operators[0] in _POSITIVE:
        return m.Compare(test.left, (_POSITIVE[test.operators[0]],), test.rights), not truth
    return test, truth
