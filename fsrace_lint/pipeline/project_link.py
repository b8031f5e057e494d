"""Link the project and run the rules. Loaded only if a result is not cached."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint import catalog, rules
from fsrace_lint.analysis.paths.storage import Storage
from fsrace_lint.analysis.queries.project import Project
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.engine.parallel.extraction import extracted
from fsrace_lint.engine.parallel.progress import CancelledError
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.baseline import RULE_FAILURE, UNREADABLE
from fsrace_lint.findings.finding import Finding, Severity, Silenced
from fsrace_lint.pipeline.files import ChangedError
from fsrace_lint.pipeline.judging import JudgedFindings, judge
from fsrace_lint.program.modules import Module
from fsrace_lint.program.name_index import NameIndex
from fsrace_lint.report import Problem
from fsrace_lint.syntax import recursion_limit
from fsrace_lint.syntax.extract import SyntaxProblem

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.engine.parallel.progress import Observer
    from fsrace_lint.files.source import Unreadable
    from fsrace_lint.findings.baseline import Baseline
    from fsrace_lint.pipeline.files import ProjectFile
    from fsrace_lint.pipeline.launch_files import LaunchFiles
    from fsrace_lint.pipeline.project_cache import ProjectCache
    from fsrace_lint.pipeline.reuse import Reuse
    from fsrace_lint.rules import LoadedRule

MANY: Final = 40
"""If more than one in `MANY` files is checked, compute the call graph for all files at once."""


class Linkable(Protocol):
    """A run, as far as linking and querying its project need it."""

    settings: Settings
    observer: Observer
    memory: ProjectCache | None
    jobs: int
    streaming: bool
    files: dict[str, ProjectFile]
    targets: list[str]
    links: dict[str, str]
    heads: NameIndex | None
    reuse: Reuse | None
    launch_files: LaunchFiles

    def link(self) -> tuple[dict[str, Module | None], Project]:
        """Link the files on the first call, and return the modules and the project."""

    def baseline_of(self, relative: str) -> Baseline:
        """Return the baseline that applies to a file."""


def entries(run: Linkable) -> catalog.Catalog:
    """Return the library models of the project of a run, including its own."""
    chosen = run.settings
    kept = b"" if run.memory is None else run.memory.entries(catalog.packed)
    return catalog.extended(chosen.catalogs, chosen.helper_modules, kept, chosen.named_helpers)


def linked(run: Linkable) -> tuple[dict[str, Module | None], Project]:
    """Link the files of a run.

    Returns:
        The modules by `relative` (None for a file that does not parse), and the project.
    """
    unknown = [file for file in run.files.values() if not file.is_known]
    if unknown:
        run.observer.stage("Extracting", len(unknown))
    for file, facts in zip(
        unknown, extracted([file.source for file in unknown], run.jobs, run.observer), strict=True
    ):
        file.take(facts)
        if run.streaming:
            file.drop_source()
    reuse = run.reuse
    few = reuse is not None or len(run.targets) * MANY < len(run.files)
    # the first of multiple pieces of evidence is reported, so the order must not depend on the named files
    modules = {relative: _link(run.files[relative], reuse, at_once=not few) for relative in sorted(run.files)}
    parsed = [module for module in modules.values() if module is not None]
    run.heads = NameIndex(((module.relative, module.head) for module in parsed), run.heads)
    commands = run.launch_files.commands(None if run.memory is None else run.memory.launches)
    project = Project(
        parsed,
        entries(run),
        also={link: modules[file] for link, file in run.links.items()},
        storage=Storage(*run.settings.storage),
        observer=run.observer,
        launches=commands.launches,
        installed=commands.installed,
        targeted=few,
        heads=run.heads,
        dependencies=None if reuse is None else reuse.restarted(),
        helpers=_helpers(run.settings, run.files),
    )
    _check_helpers(run.settings, project)
    if reuse is not None:
        reuse.hand_on(run.files, modules, project.flows)
    return modules, project


def _check_helpers(chosen: Settings, project: Project) -> None:
    """Check that the functions that the settings name exist.

    Raises:
        SettingsError: The project has no such function, and no file imports its library.
    """
    for one in chosen.every:
        for key, name in one.helpers:
            if not project.has_function(name):
                what = f"the project contains no `{name}`, and no file imports it from a library"
                raise SettingsError(f"{one.file}: `helpers.{key}`: {what}")


def judged(run: Linkable, relative: str, problems: list[Problem]) -> JudgedFindings:
    """Run the rules on one file, as described at `Run.check_file`."""
    modules, project = run.link()
    file, module = run.files[relative], modules[relative]
    found: list[Finding] | None = None
    failed: frozenset[str] = frozenset()
    if module is not None:
        with (
            run.observer.phase("query"),
            contextlib.suppress(RecursionError),
            recursion_limit.frames(recursion_limit.MEANING),
        ):
            found, failed = _query(run, project, module, problems)
    if found is None:
        found = [_unparsed(file)] if run.settings.selects(UNREADABLE, relative) else []
        failed = frozenset(rules.names())
    if not found and not file.may_suppress:
        return JudgedFindings((), (), ())
    return judged_of(run, relative, found, failed)


def judged_of(
    run: Linkable, relative: str, found: Sequence[Finding], failed: Container[str] = frozenset()
) -> JudgedFindings:
    """Apply the profile, comments, and the baseline to findings in one file.

    Args:
        run: The run.
        relative: The path relative to the project root.
        found: The findings of the rules.
        failed: The codes of rules that failed in the file.
    """
    active = functools.partial(_was_asked, run.settings, relative=relative, failed=failed)
    with run.observer.phase("suppress"):
        known, governing = run.baseline_of(relative), run.settings.of(relative)
        return judge(run.files[relative].source, found, known, active, profile=governing)


def silenced(run: Linkable, relative: str, judged: JudgedFindings) -> list[Silenced]:
    """Return the operations in a file that are not reported, each with the reason."""
    with contextlib.suppress(RecursionError), recursion_limit.frames(recursion_limit.MEANING):
        return list(_silenced(run, relative, judged))
    return []


def statistics(project: Project) -> dict[str, int]:
    """Count what linking could not resolve. Return an empty dict if code is nested too deeply."""
    with contextlib.suppress(RecursionError), recursion_limit.frames(recursion_limit.MEANING):
        return project.statistics()
    return {}


def _helpers(settings: Settings, files: Iterable[str]) -> dict[str, frozenset[str] | None]:
    """Return the helpers that the settings name for each file with such settings, or None for all helpers."""
    named = dict[str, frozenset[str] | None]()
    for relative in files:
        own = settings.of(relative)
        if own.helper_module is not None:
            named[relative] = None
        elif own.helpers:
            named[relative] = frozenset(key.replace("-", "_") for key, _ in own.helpers)
    return named


def _silenced(run: Linkable, relative: str, judged: JudgedFindings) -> Iterator[Silenced]:
    modules, project = run.link()
    module = modules[relative]
    back = judged.kept_back()
    reported = {finding.place.span for finding in judged.kept}
    for access, found in project.about(module).not_reported(reported) if module is not None else ():
        reason, message = back.get(access.span, (found.kind, found.text))
        cause = None if access.span in back else found.place
        place = Place(access.file, access.span)
        yield Silenced(place, access.function, access.op, access.display, reason, message, cause)


def unreadable(items: Iterable[Unreadable], settings: Settings) -> list[Finding]:
    """Create the findings for files and directories that cannot be read, unless the settings ignore them."""
    return [
        _about_file(UNREADABLE, item.path, item.reason, item.line, item.column)
        for item in items
        if settings.selects(UNREADABLE, item.relative)
    ]


def _was_asked(settings: Settings, code: str, *, relative: str, failed: Container[str]) -> bool:
    """Return whether all rules that a code or code prefix selects were run on a file."""
    meant = [known for known in rules.names() if known.startswith(code)] or [code]
    return all(settings.selects(known, relative) and known not in failed for known in meant)


def _query(
    run: Linkable, project: Project, module: Module, problems: list[Problem]
) -> tuple[list[Finding], frozenset[str]]:
    """Run every rule that is enabled for a file. A failing rule is reported and does not stop the rest."""
    found: list[Finding] = []
    failed: set[str] = set()
    about = project.about(module)
    for loaded in rules.load():
        run.observer.checkpoint()
        if loaded.check is None or not run.settings.selects(loaded.rule.code, module.relative):
            continue
        try:
            found += loaded.check(about)
        except (ChangedError, CancelledError, RecursionError):
            raise
        except Exception as error:  # noqa: BLE001  # a bug in a rule must not lose the findings of other rules
            failed.add(loaded.rule.code)
            if run.settings.selects(RULE_FAILURE, module.relative):
                found.append(_failed(loaded, module, error))
            problems.append(
                Problem(module.path, f"{loaded.rule.code} failed: {type(error).__name__}: {error}")
            )
    return found, frozenset(failed)


def _link(file: ProjectFile, reuse: Reuse | None, *, at_once: bool) -> Module | None:
    """Return the module of a file, or None if it does not parse. Its facts are read now or on demand."""
    known = None if reuse is None else reuse.linked_before(file)
    if known is not None:
        return known[0]
    if not file.parsed:
        return None
    module = Module(file.path, file.relative, file.known_facts, file.head)
    if at_once:
        _ = module.functions
    return module


def _about_file(code: str, path: str, message: str, line: int = 1, column: int = 1) -> Finding:
    return Finding(
        code=code,
        name=rules.names()[code],
        message=message,
        place=Place(path, Span(line, column, line, column + 1)),
        function="<module>",
        severity=Severity.WARNING,
        evidence="evident",
    )


def _unparsed(file: ProjectFile) -> Finding:
    problem = file.facts
    if not isinstance(problem, SyntaxProblem):
        problem = SyntaxProblem(recursion_limit.TOO_DEEP, 1, 1)
    return _about_file(UNREADABLE, file.path, problem.reason, problem.line, problem.column)


def _failed(loaded: LoadedRule, module: Module, error: Exception) -> Finding:
    message = f"{loaded.rule.code} ({loaded.rule.name}) failed here: {type(error).__name__}: {error}"
    return _about_file(RULE_FAILURE, module.path, message)
