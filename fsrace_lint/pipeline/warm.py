"""Projects that a process keeps linked, so that a few of their files can be checked again at once."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Final

from fsrace_lint.pipeline.project_cache import CacheUse, ProjectCache
from fsrace_lint.pipeline.project_link import MANY
from fsrace_lint.pipeline.reuse import Reuse
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.engine.parallel.progress import Observer
    from fsrace_lint.files.source import Unreadable
    from fsrace_lint.pipeline.discover import Found

MOST: Final = 4
"""The most projects that are kept: each holds the facts of all its files."""
FEW: Final = 8
"""So many files are few in any project."""
MANY_FOLLOWED: Final = 1000
"""So many functions are followed when a project was read, and are worth to be left alone from then on."""
MOST_CHECKS: Final = 10
"""After so many checks that come one after the other memory is freed."""


class NotWarmError(Exception):
    """What is asked for is not kept, or would take longer than in a process of its own."""


class WarmProjects:
    """The projects, by their settings and the folder from which their paths are spelled."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.loads = False
        """Whether a project that is not kept is read when it is asked for."""
        self._runs: dict[tuple[Settings, str], Run] = {}
        self._checks = self._followed = 0
        """The checks since this was tidied, and the functions that were followed."""
        self._is_aged = False
        """Whether something may be of no use any more that is kept for good."""

    @property
    def projects(self) -> list[tuple[str, bool]]:
        """The roots of the projects, what was asked for last at the end, and whether all is done there."""
        return [
            (str(settings.root), run.reuse is not None and run.reuse.is_done and not self.is_untidy)
            for (settings, _), run in self._runs.items()
        ]

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
            NotWarmError: It is not kept, or too much is asked for.
            BaselineError: The settings name a baseline that cannot be used.
        """
        key = settings, os.getcwd()  # noqa: PTH109  # as the files are spelled
        if key not in self._runs:
            if not self.loads:
                raise NotWarmError(f"{settings.root} is not kept")
            self._runs[key] = _loaded(settings)
            for oldest in list(self._runs)[:-MOST]:
                del self._runs[oldest]
        self._checks += 1
        before = self._runs[key]
        if len(targets) > max(FEW, len(before.files) // MANY):
            raise NotWarmError(f"{len(targets)} files are too many")
        observer.note(f"daemon: process {os.getpid()} knows {settings.root}, and reads what was changed")
        for file in before.files.values():
            file.drop_source()  # of what was reported before
        now = Run(settings, targets, observer, whole=whole, before=before)
        del self._runs[key]
        self._runs[key] = now
        return now

    def prepare(self, checkpoint: Callable[[], None]) -> None:
        """Interpret the functions that the next check may ask about.

        Args:
            checkpoint: Called before each function; a CancelledError ends the work.
        """
        for run in reversed([*self._runs.values()]):
            if run.reuse is not None:
                run.link()
                self._followed += run.reuse.interpret_all(checkpoint)
        if self._checks > MOST_CHECKS:
            self.tidy()

    @property
    def is_untidy(self) -> bool:
        """Whether anything was done since this was tidied."""
        return self._checks > 0 or self._followed > 0

    def tidy(self) -> None:
        """Free the memory of what is of no use any more; nobody can be served meanwhile.

        Where nothing was done since, what was kept for good is looked through too.
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
    """Read and link a project, with what its cache holds."""
    run = Run(settings, (), memory=ProjectCache.of(settings, CacheUse.FACTS))
    for file in run.files.values():
        file.detach_from_cache()
    run.memory, run.reuse = None, Reuse()
    # what is kept for good is not looked through for cycles again and again
    gc.collect()
    gc.freeze()
    run.link()
    if run.heads is not None:
        run.heads.put_in_order()
    return run
