"""Files of two states of a project, the same ones beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Alignment(NamedTuple):
    """Where files stand in an earlier and in a later state; both are in the order of their paths."""

    kept: list[tuple[int, int]]
    """Those that are in both: where each stood, and where it stands."""
    gone: list[int]
    new: list[int]


def aligned(before: Sequence[str], now: Sequence[str]) -> Alignment:
    """Find out where files stood, and where they stand.

    Args:
        before: The paths of the files in the earlier state, in order.
        now: Those in the later one.

    Returns:
        Their places.
    """
    if before == now:
        return Alignment([(place, place) for place in range(len(now))], [], [])
    stood = {path: place for place, path in enumerate(before)}
    kept, new = [], []
    for place, path in enumerate(now):
        if path in stood:
            kept.append((stood.pop(path), place))
        else:
            new.append(place)
    return Alignment(kept, list(stood.values()), new)
