"""The observer interface: progress and timings of a check."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from fsrace_lint.config.settings import Settings

Phase: TypeAlias = Literal["find", "read", "extract", "link", "query", "suppress", "fix", "report", "cache"]
"""The phases of a run, in order."""

_NOTHING: Final[AbstractContextManager[None]] = contextlib.nullcontext()


class CancelledError(Exception):
    """Raised by an observer to cancel the run. Any other exception can count as a failure of a rule."""


class Observer:
    """A receiver of the progress of a run, which ignores it. Subclasses override what they need."""

    curious: bool = False
    """Whether to report skipped files, which takes time to find out."""

    def begins(self, settings: Settings, *, targets: int, files: int) -> None:
        """Handle the start of a run, before files are read.

        Args:
            settings: The settings of the project.
            targets: The number of files to check.
            files: The number of files to read.
        """

    def leaves_out(self, path: str, reason: str) -> None:
        """Handle a file or directory that is skipped."""

    def note(self, message: str) -> None:
        """Handle a message about an event that does not change the findings."""

    def stage(self, title: str, total: int) -> None:
        """Handle the start of a stage.

        Args:
            title: The name of the stage.
            total: The number of files to process.
        """

    def step(self) -> None:
        """Handle one finished file of the stage. Raising `CancelledError` cancels the run."""

    def checkpoint(self) -> None:
        """Handle the start of a rule or of the analysis of a function. `CancelledError` cancels the run."""

    def phase(self, name: Phase) -> AbstractContextManager[None]:  # noqa: ARG002  # for subclasses that measure
        """Return a context manager that encloses the work of a phase."""
        return _NOTHING

    def seconds(self) -> dict[str, float]:
        """Return the time spent in each phase so far; empty for an observer that does not measure."""
        return {}

    def books(self, seconds: Mapping[str, float]) -> None:
        """Handle time that worker processes spent, as shares of the elapsed time by phase."""

    def is_copied(self) -> None:
        """Handle a fork: this process is now a copy of the one that reports progress."""


SILENT: Final = Observer()
