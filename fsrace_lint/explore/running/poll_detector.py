"""Detection of loops that check, sleep, and check again: repeated rounds without progress are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.explore.moves import NOTHING, NamedFootprint

if TYPE_CHECKING:
    from fsrace_lint.explore.messages import Pause
    from fsrace_lint.explore.moves import Move

GROWTH: Final = 10
"""How many times longer each sleep lasts than the previous one while a loop sees the same results.

This models slow other processes. `time.sleep()` guarantees only a minimum duration.
"""
SHORTEST: Final = 1e-6
"""Minimum seconds of any sleep, so that a loop with `sleep(0)` also reaches its timeout."""
MOST_GROWTH: Final = 9
"""The maximum number of times that sleeps grow."""
ROUNDS: Final = 16
"""Rounds in the same state after which a loop counts as a cycle; the state of iterators is not visible."""
GIVEN_UP: Final = 86_400.0
"""Seconds of identical rounds after which a loop continues only if no other process can move."""
PATIENCE: Final = 200
"""How many rounds such a loop then gets to end by itself."""


class PollDetector:
    """The calls of one process since its last sleep, and whether it repeats itself.

    Attributes:
        is_parked: Whether the process would only repeat itself until another process changes what it reads.
        gives_way: Whether it probably would: it moves only if no other process can, and is parked later.
    """

    def __init__(self) -> None:
        self.is_parked = False
        self.gives_way = False
        self._round: list[tuple[str, str, str]] = []
        self._before: list[tuple[str, str, str]] | None = None
        self._footprint = NOTHING
        self._watched = NOTHING
        self._state = ""
        self._repeated = 0
        self._slept = 0.0
        self._mutated = False
        self._same = 0
        self._waited = 0
        self._asked = 0
        self._asked_in = ""

    def before(self, pause: Pause) -> None:
        """Compare the round that ends with this sleep with the previous round."""
        is_same = self._before == self._round and not self._mutated
        self._repeated = self._repeated + 1 if is_same else 0
        if not is_same:
            self._slept = 0.0
        self._same = self._same + 1 if is_same and pause.state and pause.state == self._state else 0
        self._state = pause.state
        self._watched = self._footprint
        self.gives_way = self._slept > GIVEN_UP
        self._waited = self._waited + 1 if self.gives_way else 0
        self.is_parked = self._same >= ROUNDS or self._waited > PATIENCE

    def asks(self, state: str) -> None:
        """Process a lookup that may be repeated, which is a loop without a sleep.

        Args:
            state: Identifies the state of the program; "" for a different lookup.
        """
        self._asked = self._asked + 1 if state and state == self._asked_in else 0
        self._asked_in = state
        self._watched = self._footprint
        self.is_parked = self._asked >= ROUNDS

    def length(self, pause: Pause) -> float:
        """Return the duration of a sleep.

        Args:
            pause: The requested sleep.

        Returns:
            Its seconds: at least those that were requested.
        """
        seconds = max(pause.seconds, SHORTEST) * float(GROWTH ** min(self._repeated, MOST_GROWTH))
        self._slept += seconds
        return seconds

    def note(self, move: Move, *, is_pause: bool) -> None:
        """Record a move of this process."""
        if is_pause:
            self._before, self._round = self._round, []
            self._footprint, self._mutated = NOTHING, False
            return
        self._round.append((move.name, move.target, move.result))
        self._footprint = self._footprint.joined(move.footprint)
        self._mutated = self._mutated or move.has_changed

    def hears_of(self, footprint: NamedFootprint) -> None:
        """Resume the process if a move has changed what it reads."""
        if (self.is_parked or self.gives_way) and self._watched.depends_on(footprint):
            self.is_parked = self.gives_way = False
            self._asked = self._same = self._waited = 0
            self._repeated = 0
            self._slept = 0.0
