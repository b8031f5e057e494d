"""Loops that look, sleep and look again: each round is tried, and none that only repeats the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.explore.moves import NOTHING, NamedFootprint

if TYPE_CHECKING:
    from fsrace_lint.explore.messages import Pause
    from fsrace_lint.explore.moves import Move

GROWTH: Final = 10
"""How much longer each sleep lasts than the one before, while a loop sees the same again and again: the
others are slow. `time.sleep` promises that at least so much time passes."""
SHORTEST: Final = 1e-6
"""Seconds that any sleep takes: a loop that sleeps for no time at all must see its time-out too."""
MOST_GROWTH: Final = 9
"""How often sleeps grow."""
ROUNDS: Final = 16
"""After so many rounds in the same state it is a circle; what iterators count is no state that is seen."""
GIVEN_UP: Final = 86_400.0
"""Seconds of the same again and again after which a loop is only run on when nobody else can move."""
PATIENCE: Final = 200
"""How many rounds it has then, to end by itself."""


class PollDetector:
    """What one process has done since it last slept, and whether it goes round in a circle.

    Attributes:
        is_parked: Whether it would only do the same again until somebody changes what it looks at.
        gives_way: Whether it probably would: it moves when nobody else can, and parks when that is no use.
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
        """Look at the round that ends with this sleep."""
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
        """Look at a question that is asked twice in a row: a loop that does not sleep.

        Args:
            state: What tells the state that the program is in; "" where it is another question.
        """
        self._asked = self._asked + 1 if state and state == self._asked_in else 0
        self._asked_in = state
        self._watched = self._footprint
        self.is_parked = self._asked >= ROUNDS

    def length(self, pause: Pause) -> float:
        """Tell how long a sleep lasts.

        Args:
            pause: What was asked for.

        Returns:
            Its seconds: at least those asked for.
        """
        seconds = max(pause.seconds, SHORTEST) * float(GROWTH ** min(self._repeated, MOST_GROWTH))
        self._slept += seconds
        return seconds

    def note(self, move: Move, *, is_pause: bool) -> None:
        """Remember a move of this process."""
        if is_pause:
            self._before, self._round = self._round, []
            self._footprint, self._mutated = NOTHING, False
            return
        self._round.append((move.name, move.target, move.result))
        self._footprint = self._footprint.joined(move.footprint)
        self._mutated = self._mutated or move.has_changed

    def hears_of(self, footprint: NamedFootprint) -> None:
        """Go on where somebody has changed what this process looks at."""
        if (self.is_parked or self.gives_way) and self._watched.depends_on(footprint):
            self.is_parked = self.gives_way = False
            self._asked = self._same = self._waited = 0
            self._repeated = 0
            self._slept = 0.0
