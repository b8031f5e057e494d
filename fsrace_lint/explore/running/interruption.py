"""Signals that end an exploration: a handler only notes them, and the exploration stops at a safe place.

An exception out of a signal handler can come anywhere: between a fork and the moment when the process is
known, or in a hook of `os.fork()`, where Python prints and forgets it.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interrupted(Exception):  # noqa: N818  # not an error
    """A signal asks the exploration to stop."""


class Interruption:
    """The signals that arrived during an exploration.

    Attributes:
        number: The first signal that arrived, or 0.
    """

    def __init__(self) -> None:
        self.number = 0
        self.is_pending = False
        self._previous: dict[int, Any] = {}

    def check(self) -> None:
        """Stop here if a signal has arrived since the last stop.

        Raises:
            Interrupted: A signal has arrived.
        """
        if self.is_pending:
            self.is_pending = False
            raise Interrupted

    def _note(self, number: int, _frame: object) -> None:
        self.number = self.number or number
        self.is_pending = True

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note the signals that would end this program, and forget earlier ones; only in the main thread."""
        self.number, self.is_pending = 0, False
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if handler not in (signal.SIG_IGN, None):
                    self._previous[number] = signal.signal(number, self._note)
        try:
            yield
        finally:
            self.restore()

    def restore(self) -> None:
        """Handle signals as before, for example in another process."""
        while self._previous:
            signal.signal(*self._previous.popitem())


interruption = Interruption()
"""The signals of this process, which runs at most one exploration at a time."""
