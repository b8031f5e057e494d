"""Time and randomness of a process: a clock that only sleeps advance, reproducible ids and random bytes."""

from __future__ import annotations

import datetime
import hashlib
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

from fsrace_lint.explore.messages import Pause
from fsrace_lint.instrument.kernel import posix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.explore.process.gate import Gate
    from fsrace_lint.instrument.model import Answer
    from fsrace_lint.instrument.recorder import Recorder

SKEW: Final = 1.0
"""Seconds by which the wall clock of each process is ahead of the previous process's, as on two nodes."""
PATIENCE: Final = 50
"""The number of clock reads without a sleep after which each further read advances the clock by one second.
"""
# the original functions, before a process replaces its own
_datetime = datetime.datetime
_time, _monotonic, _sleep = time.time, time.monotonic, time.sleep


class Clock:
    """The time and the random bytes of one process.

    Args:
        gate: The gate where sleeps stop.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._drawn = 0
        self._looks = 0
        self._drift = 0.0

    def replacements(self) -> dict[Any, Any]:
        """Return the replacement of each original function."""
        return {
            time.sleep: self.sleep,
            time.time: self.time,
            time.time_ns: lambda: int(self.time() * 1e9),
            time.monotonic: self.monotonic,
            time.monotonic_ns: lambda: int(self.monotonic() * 1e9),
            time.perf_counter: self.monotonic,
            time.perf_counter_ns: lambda: int(self.monotonic() * 1e9),
            time.localtime: self._of_now(time.localtime),
            time.gmtime: self._of_now(time.gmtime),
            time.ctime: self._of_now(time.ctime),
            time.strftime: self._strftime(time.strftime, time.localtime),
            posix.urandom: self.urandom,
            _datetime: self._virtual_datetime(),
            tempfile._get_candidate_names: self._candidates,  # type: ignore[attr-defined]
        }

    def time(self) -> float:
        """Return the wall clock time."""
        if not self._gate.is_active():
            return _time()
        return self._gate.start + self._gate.rank * SKEW + self._elapsed()

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        if not self._gate.is_active():
            return _monotonic()
        return self._elapsed()

    def _elapsed(self) -> float:
        self._looks += 1
        if self._looks > PATIENCE:
            self._drift += 1.0
        return self._gate.now + self._drift

    def urandom(self, size: int) -> bytes:
        """Return bytes that no other process, and no other call of this process, gets."""
        if not self._gate.is_active():
            return posix.urandom(size)
        self._drawn += 1
        seed = f"{self._gate.identity.seed}.{self._drawn}".encode()
        return hashlib.shake_256(seed).digest(size)

    def sleep(self, seconds: float) -> None:
        """Let the other processes continue, until at least this much time has passed."""
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        if not self._gate.is_active():
            _sleep(seconds)
            return
        self._looks = 0

        def act(recorder: Recorder, _: Answer | None) -> None:
            recorder.result = f"until {self._gate.now:g} s"

        self._gate.wait("sleep", f"{seconds:g} s", act, Pause(float(seconds)))

    def _of_now(self, original: Callable[[float], Any]) -> Callable[..., Any]:
        def of(seconds: float | None = None) -> Any:
            return original(self.time() if seconds is None else seconds)

        return of

    def _strftime(
        self, original: Callable[..., str], localtime: Callable[[float], Any]
    ) -> Callable[..., str]:
        def strftime(form: str, when: Any = None) -> str:
            return original(form, localtime(self.time()) if when is None else when)

        return strftime

    def _virtual_datetime(self) -> type[datetime.datetime]:
        clock = self

        class AnyDatetime(type):
            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, _datetime)

        class VirtualDatetime(_datetime, metaclass=AnyDatetime):
            @classmethod
            def now(cls, tz: datetime.tzinfo | None = None) -> Any:
                return _datetime.fromtimestamp(clock.time(), tz)

            def __reduce_ex__(self, protocol: Any) -> Any:
                return reduced(self)

            @classmethod
            def today(cls) -> Any:
                return cls.now()

            @classmethod
            def utcnow(cls) -> Any:
                return _datetime.fromtimestamp(clock.time(), datetime.timezone.utc).replace(tzinfo=None)

        return VirtualDatetime

    def _candidates(self) -> Iterator[str]:
        while True:
            yield self.urandom(4).hex()


def reduced(moment: datetime.datetime) -> tuple[Any, ...]:
    """Return how to pickle a `datetime` while its class is replaced."""
    return _moment, tuple(_datetime.__reduce_ex__(moment, 2)[1])


def _moment(*parts: Any) -> datetime.datetime:
    return _datetime(*parts)
