"""Who is told how far a check is, and what takes how long."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from fsrace_lint.config.settings import Settings

Phase: TypeAlias = Literal[
    "find", "read", "extract", "link", "query", "suppress", "repair", "report", "cache"
]
"""What a run does, one after the other."""

_NOTHING: Final[AbstractContextManager[None]] = contextlib.nullcontext()


class CancelledError(Exception):
    """What an observer raises to end the work; any other exception may count as the failure of a rule."""


class Observer:
    """Is told what a run does. This one takes no notice; a class of one's own overrides what it wants."""

    curious: bool = False
    """Whether it wants to hear what is left out, which takes time to find out."""

    def begins(self, settings: Settings, *, targets: int, files: int) -> None:
        """Hear that a project is about to be read.

        Args:
            settings: Its settings.
            targets: How many of its files are to be judged.
            files: How many are read.
        """

    def leaves_out(self, path: str, reason: str) -> None:
        """Hear that a file or a folder below what was named is not looked at."""

    def note(self, message: str) -> None:
        """Hear of something that does not change what is found."""

    def stage(self, title: str, total: int) -> None:
        """Hear what is done now to so many files."""

    def step(self) -> None:
        """Hear that another file of the stage is done; an CancelledError ends the work."""

    def checkpoint(self) -> None:
        """Hear that the next rule is run, or the next function followed; an CancelledError ends the work."""

    def phase(self, name: Phase) -> AbstractContextManager[None]:  # noqa: ARG002  # for those who measure
        """Give a context around the work of a room."""
        return _NOTHING

    def seconds(self) -> dict[str, float]:
        """Tell what each room took so far; one that does not measure tells nothing."""
        return {}

    def books(self, seconds: Mapping[str, float]) -> None:
        """Hear what rooms took in other processes: the time that passed here meanwhile."""

    def is_copied(self) -> None:
        """Hear that this process is now a copy of the one that tells."""


SILENT: Final = Observer()
