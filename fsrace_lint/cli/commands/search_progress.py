"""Shows how far a search of `prove` is, on a terminal."""

from __future__ import annotations

import contextlib
import sys
from time import monotonic
from typing import TYPE_CHECKING

from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands.progress_bar import PATIENCE, PERIOD
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.explore.progress import Progress

_STAGES = {"search": "Searching", "samples": "Sampling", "shrink": "Minimizing"}


@contextlib.contextmanager
def shown() -> Iterator[Callable[[Progress], None]]:
    """Yield a function that draws a line on standard error, if that is a terminal; remove it at the end."""
    line = _Line() if terminal.is_terminal(sys.stderr) else None
    try:
        yield (lambda _: None) if line is None else line.draw
    finally:
        if line is not None:
            line.put("")


class _Line:
    def __init__(self) -> None:
        self._drawn = monotonic() + PATIENCE - PERIOD
        self._length = 0

    def draw(self, progress: Progress) -> None:
        """Draw the line again, unless that was done a moment ago."""
        now = monotonic()
        if now - self._drawn >= PERIOD:
            self._drawn = now
            self.put(described(progress))

    def put(self, text: str) -> None:
        """Replace the text of the line."""
        text = text[: terminal.width(80) - 1]
        if text or self._length:
            sys.stderr.write(f"\r{text.ljust(self._length)}\r{text}")
            sys.stderr.flush()
        self._length = len(text)


def described(progress: Progress) -> str:
    """Return the line for a state of a search."""
    rate = progress.runs / progress.seconds if progress.seconds else 0.0
    done = count(progress.schedules, "interleaving")
    limit = f" of at most {progress.most:,}" if progress.stage != "shrink" else ""
    return f"{_STAGES[progress.stage]}: {done}{limit}, {rate:.0f} runs/s, {progress.seconds:.0f} s"
