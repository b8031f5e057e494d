"""Check what a user named: each project with its cache, or as a process has kept it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fsrace_lint.engine.parallel.progress import SILENT, Observer
from fsrace_lint.files import source
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.files import ChangedError
from fsrace_lint.pipeline.project_cache import CacheUse, ProjectCache
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.pipeline.run import Checked
    from fsrace_lint.pipeline.warm import WarmProjects


def check(
    paths: Sequence[Path],
    load_settings: Callable[[Path], Settings],
    *,
    force_exclude: bool = False,
    silenced: bool = False,
    suppressed: bool = False,
    counted: bool = False,
    cache: CacheUse = CacheUse.NOT,
    observer: Observer = SILENT,
    jobs: int = 1,
    streaming: bool = False,
    warm: WarmProjects | None = None,
) -> list[tuple[Run, Checked]]:
    """Check files and folders.

    Args:
        paths: What the user named; each belongs to the project it lies in.
        load_settings: Gives the settings for a path.
        force_exclude: Whether the exclusions hold for what is named too.
        silenced: Whether to list the sites that are no findings too.
        suppressed: Whether to list what comments suppress and the baseline holds too.
        counted: Whether to count what linking could not resolve.
        cache: What may be taken from the cache of a project, and left there.
        observer: Is told how far it is.
        jobs: The most processes to use.
        streaming: Whether sources may be forgotten once they are taken apart: for a run that only reports.
        warm: The projects that this process keeps, and does not read anew; then no cache is used.

    Returns:
        The run and its result for each project, in the order in which they were named.

    Raises:
        BaselineError: The settings name a baseline that cannot be used.
        NotWarmError: A project is not among those that are kept, or too much is asked of it.
        ChangedError: A file of such a project was changed meanwhile.
    """
    projects: dict[Settings, list[Path]] = {}
    for path in paths:
        projects.setdefault(load_settings(path), []).append(path)
    results = []
    for settings, named in projects.items():
        with observer.phase("find"):
            told = observer.leaves_out if observer.curious else None
            found = discover.look(named, settings, force_exclude=force_exclude, told=told)
        top = source.absolute_path(settings.root)
        whole = top in map(source.absolute_path, named)

        def judged(run: Run) -> tuple[Run, Checked]:
            run.named = tuple(map(source.absolute_path, named))  # noqa: B023  # called at once
            return run, run.check(silenced=silenced, suppressed=suppressed, counted=counted)

        def checked(memory: ProjectCache | None, *, streaming: bool) -> tuple[Run, Checked]:
            how: dict[str, Any] = {"memory": memory, "whole": whole, "jobs": jobs, "streaming": streaming}  # noqa: B023  # called at once
            run, result = judged(Run(settings, found, observer, **how))  # noqa: B023  # called at once
            if memory is not None:
                keep(memory, run, observer)
            return run, result

        if warm is None:
            results.append(with_cache_fallback(checked, settings, cache, observer, streaming=streaming))
        else:
            results.append(judged(warm.run(settings, found, observer, whole=whole)))
    return results


def with_cache_fallback(
    checked: Callable[..., tuple[Run, Checked]],
    settings: Settings,
    wanted: CacheUse,
    observer: Observer,
    *,
    streaming: bool = False,
) -> tuple[Run, Checked]:
    """Check a project with its cache, and without it where that cannot be.

    Args:
        checked: Checks the project with a cache, or without, streaming or not; it keeps what is new.
        settings: The settings of the project.
        wanted: What is wanted of the cache.
        observer: Is told what was in the way.
        streaming: Whether sources may be forgotten meanwhile.

    Returns:
        What `checked` gives.
    """
    memory = ProjectCache.of(settings, wanted)
    if memory is not None and memory.packed.is_foreign:
        observer.note(f"cache: {memory.folder} is damaged or has the seal of somebody else, and is not used")
    if memory is not None or streaming:
        try:
            return _held(*checked(memory, streaming=streaming), streaming=streaming)
        except ChangedError as error:
            observer.note(f"{'' if memory is None else 'cache: '}{error}; everything is read again")
    return _held(*checked(None, streaming=False), streaming=False)


def _held(run: Run, result: Checked, *, streaming: bool) -> tuple[Run, Checked]:
    """Read what was not needed yet, for one that works on with the sources of a run."""
    if not streaming:
        run.load_sources()
    return run, result


def keep(memory: ProjectCache, run: Run, observer: Observer) -> None:
    """Write down what a run has found out; what is in the way is told, and does no harm."""
    try:
        with observer.phase("cache"):
            memory.save(run.settings.root, run.files.values(), run.verdicts)
    except OSError as error:
        observer.note(f"cache: {memory.folder} is not written: {error.strerror or error}")
