"""Check the paths that a user named, project by project, with a cache or in the daemon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fsrace_lint.engine.parallel.progress import SILENT, Observer
from fsrace_lint.files import source
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.files import ChangedError
from fsrace_lint.pipeline.project_cache import CacheUse, ProjectCache
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.files.source import Unreadable
    from fsrace_lint.pipeline.discover import Found
    from fsrace_lint.pipeline.program_list import ListedProgram
    from fsrace_lint.pipeline.run import Checked
    from fsrace_lint.pipeline.warm import WarmProjects

Result = TypeVar("Result")


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
    """Check files and directories.

    Args:
        paths: The paths that the user named. Each belongs to the project that contains it.
        load_settings: Returns the settings for a path.
        force_exclude: Whether exclusions also apply to `paths`.
        silenced: Whether to also list operations that were analyzed and not reported.
        suppressed: Whether to also list findings that comments or the baseline suppress.
        counted: Whether to count what linking could not resolve.
        cache: What to read from and write to the cache of each project.
        observer: Receives the progress.
        jobs: The maximum number of processes.
        streaming: Whether a run may drop each source after extraction, because it only reports findings.
        warm: The projects that this process keeps in memory. If given, no cache is used.

    Returns:
        The run and the result of each project, in the order in which the projects were named.

    Raises:
        SettingsError: The settings below the root of a project are invalid.
        BaselineError: The settings name a baseline that cannot be used.
        NotWarmError: A project is not in `warm`, or too many files are requested.
        ChangedError: A file of such a project changed during the run.
    """
    results = []
    projects = _projects(paths, load_settings, observer, force_exclude=force_exclude)
    for settings, named, found, whole in projects:

        def judged(run: Run) -> tuple[Run, Checked]:
            run.named = tuple(map(source.absolute_path, named))  # noqa: B023  # called immediately
            return run, run.check(silenced=silenced, suppressed=suppressed, counted=counted)

        def checked(memory: ProjectCache | None, *, streaming: bool) -> tuple[Run, Checked]:
            how: dict[str, Any] = {"memory": memory, "whole": whole, "jobs": jobs, "streaming": streaming}  # noqa: B023  # called immediately
            run, result = judged(Run(settings, found, observer, **how))  # noqa: B023  # called immediately
            if memory is not None:
                keep(memory, run, observer)
            return run, result

        if warm is None:
            results.append(with_cache_fallback(checked, settings, cache, observer, streaming=streaming))
        else:
            results.append(judged(warm.run(settings, found, observer, whole=whole)))
    return results


def _projects(
    paths: Iterable[Path],
    load_settings: Callable[[Path], Settings],
    observer: Observer,
    *,
    force_exclude: bool = False,
) -> list[tuple[Settings, list[Path], list[Found | Unreadable], bool]]:
    """Find the files to check, by project. Projects in the named directories are checked on their own.

    Returns:
        For each project: its settings, the named paths, the files, and whether these are all of its files.
    """
    told = observer.leaves_out if observer.curious else None
    named: dict[Settings, list[Path]] = {}
    found: dict[Settings, list[Found | Unreadable]] = {}
    pending = list(paths)
    while pending:
        part: dict[Settings, list[Path]] = {}
        for path in pending:
            part.setdefault(load_settings(path), []).append(path)
        pending = []
        for settings, some in part.items():
            with observer.phase("find"):
                looked = discover.look(some, settings, force_exclude=force_exclude, told=told, others=pending)
            named.setdefault(settings, []).extend(some)
            found.setdefault(settings, []).extend(looked)
    roots = {settings: source.absolute_path(settings.root) for settings in named}
    return [
        (settings, some, found[settings], roots[settings] in map(source.absolute_path, some))
        for settings, some in named.items()
    ]


class ProjectPrograms(NamedTuple):
    """The programs of one project in the files that a user named.

    Attributes:
        programs: The programs, in the order of their files.
        warnings: The files that were not read, and the settings that name no program.
        files: The number of files.
    """

    programs: list[ListedProgram]
    warnings: list[str]
    files: int


def list_programs(
    paths: Sequence[Path],
    load_settings: Callable[[Path], Settings],
    cache: CacheUse,
    observer: Observer = SILENT,
    *,
    jobs: int = 1,
) -> list[ProjectPrograms]:
    """List the programs in files and directories.

    Args:
        paths: As for `check`.
        load_settings: As for `check`.
        cache: What to read from and write to the cache of each project.
        observer: Receives the progress.
        jobs: The maximum number of processes.

    Returns:
        The programs of each project, in the order in which the projects were named.
    """
    results = []
    for settings, _, found, whole in _projects(paths, load_settings, observer):

        def listed(memory: ProjectCache | None, *, streaming: bool) -> tuple[Run, ProjectPrograms]:
            how: dict[str, Any] = {"memory": memory, "whole": whole, "jobs": jobs, "streaming": streaming}  # noqa: B023  # called immediately
            run = Run(settings, found, observer, **how)  # noqa: B023  # called immediately
            result = run.list_programs()
            if memory is not None:
                keep(memory, run, observer)
            return run, ProjectPrograms(*result, len(run.targets) + len(run.unreadable))

        results.append(with_cache_fallback(listed, settings, cache, observer, streaming=True)[1])
    return results


def with_cache_fallback(
    checked: Callable[..., tuple[Run, Result]],
    settings: Settings,
    wanted: CacheUse,
    observer: Observer,
    *,
    streaming: bool = False,
) -> tuple[Run, Result]:
    """Check a project with its cache, or without if there is no cache or a file changes during the run.

    Args:
        checked: Checks the project with or without a cache, and streaming or not. It also saves new results.
        settings: The settings of the project.
        wanted: What to read from and write to the cache.
        observer: Receives a note if the cache is ignored or all files are read again.
        streaming: Whether the run may drop sources.

    Returns:
        The result of `checked`.
    """
    memory = ProjectCache.of(settings, wanted)
    if memory is not None and memory.packed.is_foreign:
        observer.note(f"cache: ignoring {memory.folder}: it is damaged or was signed with another key")
    if memory is not None or streaming:
        try:
            return _held(*checked(memory, streaming=streaming), streaming=streaming)
        except ChangedError as error:
            observer.note(f"{'' if memory is None else 'cache: '}{error}; reading all files again")
    return _held(*checked(None, streaming=False), streaming=False)


def _held(run: Run, result: Result, *, streaming: bool) -> tuple[Run, Result]:
    """Load the remaining sources, unless the run streams, because callers may use them."""
    if not streaming:
        run.load_sources()
    return run, result


def keep(memory: ProjectCache, run: Run, observer: Observer) -> None:
    """Save the results of a run in the cache. A failure is only noted."""
    try:
        with observer.phase("cache"):
            memory.save(run.settings.root, run.files.values(), run.verdicts)
    except OSError as error:
        observer.note(f"cache: {memory.folder} was not written: {error.strerror or error}")
