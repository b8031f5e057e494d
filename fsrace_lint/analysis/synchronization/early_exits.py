"""The ways on which ranks leave a function, or a loop, without reaching a collective."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.dataflow.abstract_state import FlowResult, LoopExit
    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition as Tested
    from fsrace_lint.analysis.synchronization.event_sequences import SequenceItem
    from fsrace_lint.analysis.synchronization.sync_points import SyncPoints


class WayOut(NamedTuple):
    """A way on which ranks leave without reaching a sync point.

    Attributes:
        conditions: The conditions of the way that are not those of the sync point.
        raises: Whether the ranks fail.
        certain: Whether the ranks that leave cannot meet the others at another sync point of the same name.
        is_next: Whether they skip it only in the next iteration.
        ends_loop: Whether they leave a loop.
    """

    conditions: tuple[Tested, ...]
    raises: bool = False
    certain: bool = True
    is_next: bool = False
    ends_loop: bool = False


def ways_out(sync_point: SequenceItem, flow: FlowResult, counted: SyncPoints) -> Iterator[WayOut]:
    """Yield the ways on which ranks leave a function, or an iteration, without reaching a sync point."""
    conditions = sync_point.call_site.state.conditions
    position = flow.call_sites.index(sync_point.call_site)
    left = (
        *((way, WayOut((), raises=False)) for way in flow.exits if way.position <= position),
        *((way, WayOut((), raises=True)) for way in flow.exceptional_exits if way.position <= position),
        *(
            (
                way,
                WayOut(
                    (),
                    certain=not counted.meets_later(sync_point, way),
                    is_next=way.position > position,
                    ends_loop=way.how == "break",
                ),
            )
            for way in flow.loop_exits
            if _skips(way, sync_point, position)
        ),
    )
    for way, found in left:
        if not mutually_exclusive(way.state.conditions, conditions):
            own = tuple(literal for literal in way.state.conditions if literal not in conditions)
            yield found._replace(conditions=own)


def _skips(way: LoopExit, sync_point: SequenceItem, position: int) -> bool:
    """Return whether ranks that end an iteration skip a sync point of the loop.

    A `break` also skips the sync points that come first in the next iteration.
    """
    if way.loop not in sync_point.call_site.loops:
        return False
    return way.how == "break" or (way.how == "continue" and way.position <= position)
