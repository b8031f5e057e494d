"""Check one file that is passed on stdin as part of its project, whose other files are on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.engine.parallel.progress import SILENT, Observer
from fsrace_lint.files import source
from fsrace_lint.files.source import Unreadable
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.check import keep, with_cache_fallback
from fsrace_lint.pipeline.project_cache import CacheUse
from fsrace_lint.pipeline.run import Checked, Run

if TYPE_CHECKING:
    from pathlib import Path

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.pipeline.project_cache import ProjectCache


def check_handed(
    data: bytes,
    file: Path,
    settings: Settings,
    *,
    force_exclude: bool,
    silenced: bool,
    suppressed: bool = False,
    counted: bool = False,
    cache: CacheUse = CacheUse.NOT,
    observer: Observer = SILENT,
    jobs: int = 1,
    streaming: bool = False,
) -> tuple[Run, Checked]:
    """Check the bytes of one file as if they were on disk.

    Args:
        data: The bytes.
        file: The path of the file, which need not exist.
        settings: The settings of its project.
        force_exclude: Whether exclusions apply to the file.
        silenced: Whether to also list operations that were analyzed and not reported.
        suppressed: Whether to also list findings that comments or the baseline suppress.
        counted: Whether to count what linking could not resolve.
        cache: What to read from and write to the cache of the project.
        observer: Receives the progress.
        jobs: The maximum number of processes.
        streaming: Whether the run may drop each source after extraction.

    Returns:
        The run and its result.
    """

    def checked(memory: ProjectCache | None, *, streaming: bool) -> tuple[Run, Checked]:
        whole = run = Run(settings, (), observer, memory=memory, jobs=jobs, streaming=streaming)
        if not (force_exclude and discover.leaves_out(file, settings)):
            run = with_file(run, data, file)
        result = run.check(silenced=silenced, suppressed=suppressed, counted=counted)
        if memory is not None:
            keep(memory, whole, observer)
        return run, result

    return with_cache_fallback(checked, settings, cache, observer, streaming=streaming)


def with_file(run: Run, data: bytes, file: Path) -> Run:
    """Return a run with one file replaced or added, which reports only on this file."""
    root = run.settings.root
    link = run.links.get(source.names_of(file, root)[2])
    read = source.decode(data, file if link is None else root / link, root)
    if isinstance(read, Unreadable):
        other = run.with_sources()
        other.unreadable = [read]
        return other
    return run.with_sources(read)
