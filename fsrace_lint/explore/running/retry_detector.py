"""Detection of retry loops: a process that repeats the same calls with the same results waits for others.

This makes schedules fair, as CHESS does (Musuvathi, Qadeer: "Fair Stateless Model Checking", PLDI 2008). It
makes no difference whether a loop sleeps, spins, checks a path, or fails to acquire a lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.explore.moves import NOTHING, NamedFootprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.explore.messages import CallRequest, Pause
    from fsrace_lint.explore.moves import Move

GROWTH: Final = 10
"""How many times longer each round of a loop lasts than the previous one while nothing changes.

This models slow other processes. `time.sleep()` guarantees only a minimum duration.
"""
SHORTEST: Final = 1e-6
"""Minimum seconds of any sleep or round, so that a loop with `sleep(0)` also reaches its timeout."""
MOST_GROWTH: Final = 9
"""The maximum number of times that rounds grow."""
LONGEST: Final = 24
"""The maximum number of calls in one round."""
PATIENCE: Final = 200
"""Identical rounds after which a loop counts as endless."""
PATIENCE_WITHOUT_SLEEP: Final = 1000
"""Calls after which a loop that does not sleep counts as endless."""
RETURNS: Final = 20
"""How often a process ends a loop by itself and enters it again before the outer loop counts as endless."""
TRANSFERS: Final = frozenset(
    [
        *("read", "pread", "readv", "preadv", "write", "pwrite", "writev", "pwritev"),
        "sendfile",
        "copy_file_range",
    ]
)
"""Calls that move the position in a file, so that a repetition is not in the same state."""

CallKey = tuple[int, str, str, str, int]
Cycle = tuple[CallKey, ...]
Loop = tuple[int, int, Cycle]
"""A retry loop: the process, a digest of everything that it has observed, and the calls of one round."""


class Past(NamedTuple):
    """What a process has observed.

    Attributes:
        digest: A digest of its calls, and of all calls that happened before them: these determine its state.
        is_fresh: Whether its latest call may have observed a call of another process for the first time.
    """

    digest: int
    is_fresh: bool


class _Made(NamedTuple):
    key: CallKey
    footprint: NamedFootprint
    state: bytes


class _Ended(NamedTuple):
    """A loop that has ended by itself, such as by a timeout: how often, and the state at its latest start."""

    times: int
    was_impatient: bool
    state: bytes
    origin: int


class RetryDetector:
    """The latest calls of one process, and whether it repeats itself.

    A process repeats itself if it makes the same calls, at the same places in its code, with the same results
    for the second time, and neither this process nor another one has changed anything that matters to it.

    Attributes:
        is_stuck: Whether the process has repeated itself so often that the loop counts as endless.
        is_repeating: Whether its latest call only repeats an earlier one.
        is_impatient: Whether it continues although other processes could change what it waits for.
        is_new: Whether it has not made its latest call with this result before.
        origin: A digest of everything that the process had observed when the current loop began, or when it
            last found something changed: two loops with the same origin and the same cycle are in the same
            state, even if equal results hide different contents.
        cycle: The calls of one round of the current loop; empty if it does not repeat itself.
    """

    def __init__(self) -> None:
        self.is_stuck = False
        self.is_impatient = False
        self.is_repeating = False
        self.is_new = False
        self.origin = 0
        self.cycle: Cycle = ()
        self._calls: list[_Made] = []
        self._seen = NOTHING
        self._transfers: dict[str, int] = {}
        self._sleeps = False
        self._state = self._start = b""
        self._watched = NOTHING
        self._made = 0
        self._rounds = 0
        self._awake = 0
        self._woken = False
        self._known: set[CallKey] = set()
        self._past = 0
        self._ended: dict[Cycle, _Ended] = {}

    @property
    def gives_way(self) -> bool:
        """Whether the process moves only if no other process can."""
        return bool(self.cycle) and not self._awake and not self.is_impatient

    @property
    def changes_nothing(self) -> bool:
        """Whether a round of the current loop changes nothing, not even for a moment."""
        return not self._watched.changes

    def length(self, pause: Pause) -> float:
        """Return the duration of a sleep in seconds: at least the requested duration."""
        return max(pause.seconds, SHORTEST) * self._growth()

    def _growth(self) -> float:
        return float(GROWTH ** min(self._rounds, MOST_GROWTH))

    def key(self, request: CallRequest, move: Move) -> CallKey:
        """Return what identifies a call and its result in the history of the process."""
        if move.name == "sleep":
            return (request.site, "sleep", "", "", 0)
        count = 0
        if move.name in TRANSFERS:
            count = self._transfers[move.target] = self._transfers.get(move.target, 0) + 1
        elif move.name.startswith("open"):
            self._transfers.pop(move.target, None)
        return (request.site, move.name, move.target, move.result, count)

    def note(self, key: CallKey, move: Move, state: Callable[[], bytes], past: Past) -> None:
        """Record a call of this process.

        Args:
            key: The key of the call.
            move: The call.
            state: Returns a digest of the tree and the locks.
            past: What the process has observed, including this call.
        """
        self.is_new = key not in self._known
        self._known.add(key)
        self._past = past.digest
        if past.is_fresh:
            self.origin = past.digest
        self.is_repeating = bool(self.cycle) and self._goes_on(key, state)
        if self.is_repeating:
            return
        if self.cycle:
            self._leave()
        self._calls.append(_Made(key, move.footprint, b""))
        del self._calls[: -2 * LONGEST]
        self._seen = self._seen.joined(move.footprint)
        self._detect(state)

    def _goes_on(self, key: CallKey, state: Callable[[], bytes]) -> bool:
        size = len(self.cycle)
        if key != self.cycle[self._made % size]:
            return False
        self._made += 1
        self._awake = max(0, self._awake - 1)
        if self._made % size:
            return True
        if self._state and state() != self._state:
            return False
        self._rounds += 1
        self.is_stuck = self._rounds >= PATIENCE and (self._sleeps or self._made >= PATIENCE_WITHOUT_SLEEP)
        return True

    def lag(self) -> float:
        """Return the seconds that a finished round without a sleep has taken."""
        is_round = self.cycle and self._rounds and not self._made % len(self.cycle)
        return SHORTEST * self._growth() if is_round and not self._sleeps else 0.0

    def _leave(self) -> None:
        if not self._woken:
            before = self._ended.get(self.cycle, _Ended(0, False, b"", 0))
            self._ended[self.cycle] = _Ended(before.times + 1, self.is_impatient, self._start, self.origin)
        self.cycle, self._calls = (), []
        self.is_stuck = self.is_impatient = False
        self._rounds = self._awake = 0

    def _detect(self, state: Callable[[], bytes]) -> None:
        """Find the shortest round that was made twice, or three times if it changes anything."""
        calls = self._calls
        for size in range(1, len(calls) // 2 + 1):
            if calls[-1 - size].key != calls[-1].key:
                continue
            last, before = calls[-size:], calls[-2 * size : -size]
            if any(one.key != two.key for one, two in zip(last, before, strict=True)):
                continue
            if any(call.footprint.changes for call in last):
                calls[-1] = calls[-1]._replace(state=state())
                if calls[-1].state != before[-1].state:
                    return
            self._enter(last, state())
            return

    def _enter(self, calls: list[_Made], state: bytes) -> None:
        self.cycle = tuple(call.key for call in calls)
        self._start = state
        ended = self._ended.get(self.cycle)
        if ended is not None and ended.state == state:
            # an outer loop has begun the same loop again
            self.is_impatient = ended.was_impatient
            self.is_stuck, self.origin = ended.times >= RETURNS, ended.origin
        else:
            self._ended.pop(self.cycle, None)
            self.origin = self._past
        self._state = calls[-1].state
        self._sleeps = any(key[1] == "sleep" for key in self.cycle)
        self._watched = NOTHING
        for call in calls:
            self._watched = self._watched.joined(call.footprint)
        self._made = self._rounds = self._awake = 0
        self._woken = False

    def hears_of(self, footprint: NamedFootprint) -> None:
        """Let the process make another round if a call of another process has changed what it reads."""
        if not self._seen.depends_on(footprint):
            return
        self._ended = {}
        if self.cycle:
            if self._watched.depends_on(footprint):
                self.is_stuck = self.is_impatient = False
                self._rounds, self._awake, self._woken = 0, len(self.cycle), True
        else:
            for at in range(len(self._calls) - 1, -1, -1):
                if self._calls[at].footprint.depends_on(footprint):
                    del self._calls[: at + 1]
                    break

    def calm_down(self) -> None:
        """Give way again, after an impatient process has repeated itself in vain."""
        self.is_stuck = self.is_impatient = False
