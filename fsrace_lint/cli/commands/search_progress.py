"""Shows how far a search of `prove` is, on a terminal."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING

from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands.progress_bar import PATIENCE, PERIOD
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from types import TracebackType

    from fsrace_lint.explore.progress import Progress

_STAGES = {"search": "Searching", "samples": "Sampling", "shrink": "Minimizing"}


class SearchProgress:
    """A line on standard error, if that is a terminal; it is removed at the end."""

    def __init__(self) -> None:
        self._shows = terminal.is_terminal(sys.stderr)
        self._drawn = monotonic() + PATIENCE - PERIOD
        self._length = 0

    def __enter__(self) -> SearchProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._put("")

    def show(self, progress: Progress) -> None:
        """Draw the line again, unless that was done a moment ago."""
        now = monotonic()
        if self._shows and now - self._drawn >= PERIOD:
            self._drawn = now
            self._put(described(progress))

    def _put(self, text: str) -> None:
        if self._shows and (text or self._length):
            text = text[: terminal.width(80) - 1]
            sys.stderr.write(f"\r{text.ljust(self._length)}\r{text}")
            sys.stderr.flush()
            self._length = len(text)


def described(progress: Progress) -> str:
    """Return the line for a state of a search."""
    rate = progress.runs / progress.seconds if progress.seconds else 0.0
    done = count(progress.schedules, "interleaving")
    limit = f" of at most {progress.most:,}" if progress.stage != "shrink" else ""
    return f"{_STAGES[progress.stage]}: {done}{limit}, {rate:.0f} runs/s, {progress.seconds:.0f} s"
