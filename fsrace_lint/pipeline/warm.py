"""Linked projects that a daemon keeps in memory, to check a few of their files again quickly."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Final

from fsrace_lint.files.source import Unreadable
from fsrace_lint.pipeline.project_cache import CacheUse, ProjectCache
from fsrace_lint.pipeline.project_link import MANY
from fsrace_lint.pipeline.reuse import Reuse
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.engine.parallel.progress import Observer
    from fsrace_lint.pipeline.discover import Found

MOST: Final = 4
"""The maximum number of projects to keep. Each holds the facts of all its files."""
FEW: Final = 8
"""A check of at most this many files is small in any project."""
MANY_FOLLOWED: Final = 1000
"""If more functions than this were interpreted, their results are excluded from garbage collection."""
MOST_CHECKS: Final = 10
"""After more consecutive checks than this, memory is freed."""


class NotWarmError(Exception):
    """The project is not in memory, or the check would take longer than in a process of its own."""


class WarmProjects:
    """The projects, by their settings and the current directory from which their paths are spelled."""

    def __init__(self) -> None:
        """Start without projects."""
        self.loads = False
        """Whether to load a project that is not in memory."""
        self._runs: dict[tuple[Settings, str], Run] = {}
        self._checks = self._followed = 0
        """The checks and the interpreted functions since the last call of `tidy`."""
        self._is_aged = False
        """Whether objects that are excluded from garbage collection may be unused by now."""

    @property
    def projects(self) -> list[tuple[str, bool]]:
        """The roots of the projects, least recently used first, each with whether all work there is done."""
        return [
            (str(settings.root), run.reuse is not None and run.reuse.is_done and not self.is_untidy)
            for (settings, _), run in self._runs.items()
        ]

    def run(
        self, settings: Settings, targets: Sequence[Found | Unreadable], observer: Observer, *, whole: bool
    ) -> Run:
        """Return a run for the current state of a project on disk.

        Args:
            settings: The settings of the project.
            targets: The files to report on.
            observer: Receives the progress.
            whole: Whether the targets are all files of the project.

        Raises:
            NotWarmError: The project is not in memory, or there are too many targets.
            BaselineError: The settings name a baseline that cannot be used.
        """
        key = settings, os.getcwd()  # noqa: PTH109  # paths are spelled relative to it
        if key not in self._runs:
            if not self.loads:
                raise NotWarmError(f"{settings.root} is not loaded")
            self._runs[key] = _loaded(settings)
            for oldest in list(self._runs)[:-MOST]:
                del self._runs[oldest]
        self._checks += 1
        before = self._runs[key]
        number = sum(isinstance(item, Unreadable) or not item.is_launch for item in targets)
        if number > max(FEW, len(before.files) // MANY):
            raise NotWarmError(f"too many files: {number}")
        observer.note(f"daemon: pid {os.getpid()} has {settings.root} loaded and reads only changed files")
        for file in before.files.values():
            file.drop_source()  # left over from the previous report
        now = Run(settings, targets, observer, whole=whole, before=before)
        del self._runs[key]
        if now.settings != before.settings:
            raise NotWarmError(f"the settings of {settings.root} changed")
        self._runs[key] = now
        return now

    def prepare(self, checkpoint: Callable[[], None]) -> None:
        """Interpret the functions that the next check may need.

        Args:
            checkpoint: Called before each function. A `CancelledError` stops the work.
        """
        for run in reversed([*self._runs.values()]):
            if run.reuse is not None:
                run.link()
                self._followed += run.reuse.interpret_all(checkpoint)
        if self._checks > MOST_CHECKS:
            self.tidy()

    @property
    def is_untidy(self) -> bool:
        """Whether there was any work since the last call of `tidy`."""
        return self._checks > 0 or self._followed > 0

    def tidy(self) -> None:
        """Free unused memory. The daemon answers no requests meanwhile.

        If there was no work since the last call, objects that were excluded from garbage collection are
        collected too.
        """
        if self.is_untidy:
            gc.collect()
            if self._followed > MANY_FOLLOWED:
                gc.freeze()
            self._checks, self._followed, self._is_aged = 0, 0, True
        elif self._is_aged:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._is_aged = False


def _loaded(settings: Settings) -> Run:
    """Read and link a project, using its cache."""
    run = Run(settings, (), memory=ProjectCache.of(settings, CacheUse.FACTS))
    for file in run.files.values():
        file.detach_from_cache()
    run.memory, run.reuse = None, Reuse()
    # objects that are kept for good need not be scanned for cycles repeatedly
    gc.collect()
    gc.freeze()
    run.link()
    if run.heads is not None:
        run.heads.put_in_order()
    return run
