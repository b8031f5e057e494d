"""Projects that a process keeps linked, so that a few of their files can be checked again at once."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Final

from fsrace_lint.pipeline.linking import MANY
from fsrace_lint.pipeline.memory import Cached, Memory
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.discover import Found
    from fsrace_lint.pipeline.observer import Observer
    from fsrace_lint.settings import Settings
    from fsrace_lint.source import Unreadable

MOST: Final = 4
"""The most projects that are kept: each holds the facts of all its files."""
FEW: Final = 8
"""So many files are few in any project."""


class NotKeptError(Exception):
    """What is asked for is not kept, or would take longer than in a process of its own."""


class Kept:
    """The projects, by their settings and the folder from which their paths are spelled."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.loads = False
        """Whether a project that is not kept is read when it is asked for."""
        self._runs: dict[tuple[Settings, str], Run] = {}

    @property
    def roots(self) -> list[str]:
        """The roots of the projects, what was asked for last at the end."""
        return [str(settings.root) for settings, _ in self._runs]

    def run(
        self, settings: Settings, targets: Sequence[Found | Unreadable], observer: Observer, *, whole: bool
    ) -> Run:
        """Give a project as it is on the disk now.

        Args:
            settings: Its settings.
            targets: The files to report on.
            observer: Is told how far this is.
            whole: Whether the targets are all of its files.

        Returns:
            What a new run would be.

        Raises:
            NotKeptError: It is not kept, or too much is asked for.
            BaselineError: The settings name a baseline that cannot be used.
        """
        key = settings, os.getcwd()  # noqa: PTH109  # as the files are spelled
        if key not in self._runs:
            if not self.loads:
                raise NotKeptError(f"{settings.root} is not kept")
            self._runs[key] = _loaded(settings)
            for oldest in list(self._runs)[:-MOST]:
                del self._runs[oldest]
        before = self._runs[key]
        if len(targets) > max(FEW, len(before.files) // MANY):
            raise NotKeptError(f"{len(targets)} files are too many")
        observer.note(f"daemon: process {os.getpid()} knows {settings.root}, and reads what was changed")
        for file in before.files.values():
            file.release()  # of what was reported before
        now = Run(settings, targets, observer, whole=whole, before=before)
        del self._runs[key]
        self._runs[key] = now
        return now


def _loaded(settings: Settings) -> Run:
    """Read and link a project, with what its cache holds."""
    run = Run(settings, (), memory=Memory.of(settings, Cached.FACTS))
    for file in run.files.values():
        file.keep()
    run.memory = None
    # what is kept for good is not looked through for cycles again and again
    gc.collect()
    gc.freeze()
    run.link()
    if run.heads is not None:
        run.heads.put_in_order()
    return run
