"""One project from its files to its findings: find, read, extract, link, query, suppress."""

from __future__ import annotations

import copy
import functools
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint import baseline, catalog, discover, fingerprints, rules, source
from fsrace_lint.facts.extract import SyntaxProblem, extract
from fsrace_lint.facts.model import FileFacts
from fsrace_lint.findings import Finding, Idiom, Severity, Silenced, Suppression
from fsrace_lint.pipeline import workers
from fsrace_lint.pipeline.judging import Judged, Looked, judge
from fsrace_lint.pipeline.observer import SILENT, Observer
from fsrace_lint.project.names.modules import link_module
from fsrace_lint.project.queries import Project, Storage
from fsrace_lint.report import Outcome, Problem
from fsrace_lint.source import Source, Unreadable
from fsrace_lint.spans import Place, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from pathlib import Path

    from fsrace_lint.project.names.modules import Module
    from fsrace_lint.rules import LoadedRule
    from fsrace_lint.settings import Settings

UNREADABLE = "FSR001"
RULE_FAILURE = "FSR002"
_ORDER: Final = "FSR4"
"""The family of rules about the order of processes."""


class Checked(msgspec.Struct, frozen=True):
    """What a check found, with the sources it reports on by `Place.path`, and what it saw for a baseline."""

    outcome: Outcome
    sources: dict[str, Source]
    seen: baseline.Seen = baseline.NOTHING_SEEN


class _File(msgspec.Struct, frozen=True):
    """One file as far as it could be read: its facts, or the reason why there are none."""

    source: Source
    facts: FileFacts | SyntaxProblem


class Run:
    """One project, read once; it can be checked, and checked again with one file changed."""

    def __init__(
        self,
        settings: Settings,
        targets: Sequence[Path | Unreadable],
        observer: Observer = SILENT,
        *,
        jobs: int = 1,
    ) -> None:
        """Read the files of a project.

        Args:
            settings: The settings of the project.
            targets: The files to report on, and the folders that could not be listed.
            observer: Is told how far this is, and later what is done with the run.
            jobs: The most processes to use, to read the files and later to check them.

        Raises:
            BaselineError: The settings name a baseline that cannot be used.
        """
        self.settings = settings
        self.observer = observer
        self.jobs = jobs
        self.baseline = baseline.of(settings)
        self.named: tuple[str, ...] = ()
        """What the user named, as absolute paths."""
        self.unreadable: list[Unreadable] = [item for item in targets if isinstance(item, Unreadable)]
        self.files: dict[str, _File] = {}
        self.targets: list[str] = []
        self._linked: tuple[dict[str, Module | None], Project] | None = None
        named = dict.fromkeys(item for item in targets if not isinstance(item, Unreadable))
        with observer.room("find"):
            every = dict.fromkeys((*discover.find_all(settings), *named))
        self.links = discover.links_among(every, settings.root)
        """Links to files of the project, by relative path; such a file is read once, by its own name."""
        asked = {self.links.get(name, name) for name in map(self._relative, named)}
        observer.begins(settings, targets=len(asked), files=len(every) - len(self.links))
        observer.stage("Reading", len(every) - len(self.links))
        found: list[Source] = []
        for path in every:
            relative = self._relative(path)
            if relative not in self.links:
                found += self._read(path, report=relative in asked)
        for read, facts in zip(found, workers.extracted(found, jobs, observer), strict=True):
            self.files[read.relative] = _File(read, facts)

    def _relative(self, path: Path) -> str:
        return source.names_of(path, self.settings.root)[2]

    def check(self, *, silenced: bool = False, suppressed: bool = False, statistics: bool = False) -> Checked:
        """Link the files, run the rules on the targets, and take out what is suppressed or in the baseline.

        Args:
            statistics: Whether to count what could not be resolved in all functions of the project.
            silenced: Whether to list the sites that are no findings too.
            suppressed: Whether to list the findings that are taken out too.

        Returns:
            What was found.
        """
        findings = unreadable(self.unreadable, self.settings)
        self.link()
        self.observer.stage("Checking", len(self.targets))
        look = workers.Task(functools.partial(self._look, silenced=silenced), Looked, "query")
        sizes = [len(self.files[relative].source.data) for relative in self.targets]
        looked = look.each(self.targets, sizes, self.jobs, self.observer)
        results = [one.judged for one in looked]
        findings += (finding for result in results for finding in (*result.kept, *result.unused))
        silent = [item for one in looked for item in one.silenced]
        problems = [problem for one in looked for problem in one.problems]
        held = sorted((one for result in results for one in result.held), key=Suppression.sort_key)
        by_comment = sum(len(result.suppressed) for result in results)
        counts = {
            "files": len(self.targets) + len(self.unreadable),
            "files-linked": len(self.files),
            "suppressed": by_comment,
            **({"baseline": len(held) - by_comment} if self.settings.baseline else {}),
            **(self.link()[1].statistics() if statistics else {}),
        }
        ordered = tuple(sorted(findings, key=Finding.sort_key))
        sources = {file.source.path: file.source for file in self.files.values()}
        listed = tuple(sorted(silent, key=Silenced.sort_key)) if silenced else None
        taken_out = tuple(held) if suppressed else None
        outcome = Outcome(ordered, tuple(problems), counts, listed, taken_out)
        return Checked(outcome, sources, self._seen(results))

    def _seen(self, results: Sequence[Judged]) -> baseline.Seen:
        parsed = (name for name in self.targets if not isinstance(self.files[name].facts, SyntaxProblem))
        return baseline.Seen(
            Counter(known_by for result in results for known_by in result.reported),
            Counter(known_by for result in results for known_by in result.occurring),
            frozenset(map(fingerprints.spelled, parsed)),
        )

    def _look(self, relative: str, *, silenced: bool) -> Looked:
        problems: list[Problem] = []
        judged = self.check_file(relative, problems)
        silent = tuple(self._silenced(relative, judged)) if silenced else ()
        return Looked(judged, tuple(problems), silent)

    def check_file(self, relative: str, problems: list[Problem]) -> Judged:
        """Run the rules on one file; the project is linked the first time only.

        A comment that suppresses what only the strict profile reports is not
        unused in the default profile, and none is where the rule could not be asked.

        Args:
            relative: The file's path from the project root, one of `files`.
            problems: Takes the failures of rules.

        Returns:
            Its findings, those that comments suppress or the baseline holds, and those that the
            profile leaves out.
        """
        modules, project = self.link()
        file, module = self.files[relative], modules[relative]
        if module is not None:
            with self.observer.room("query"):
                found, failed = self._query(project, module, problems)
        else:
            found = [_unparsed(file)] if self._reports(UNREADABLE, relative) else []
            failed = frozenset(rules.names())
        active = functools.partial(self._was_asked, relative=relative, failed=failed)
        everything = self.settings.profile == "strict"
        with self.observer.room("suppress"):
            return judge(file.source, found, self.baseline, active, everything=everything)

    def everything(self, paths: Container[str], *, everywhere: bool) -> list[Finding]:
        """Give what all rules find, whether they are selected or not.

        Args:
            paths: The files to look at, as findings name them.
            everywhere: Whether to look at all files of the project.

        Returns:
            The findings of the profile, and all that are about the order of processes: what
            a repair must not break.
        """
        every = copy.copy(self)
        every.settings = msgspec.structs.replace(self.settings, select=(), ignore=())
        every.baseline = baseline.NONE
        found: list[Finding] = []
        for relative, file in self.files.items():
            if everywhere or file.source.path in paths:
                judged = every.check_file(relative, [])
                found += (*judged.kept, *(f for f in judged.strict if f.code.startswith(_ORDER)))
        return sorted(found, key=Finding.sort_key)

    def idiom(self, relative: str, span: Span) -> Idiom:
        """Say how a call would test for the main process and wait for all, as its file spells that."""
        modules, project = self.link()
        module = modules[relative]
        return Idiom() if module is None else Idiom(*project.about(module).idioms(span))

    def _silenced(self, relative: str, judged: Judged) -> Iterator[Silenced]:
        """Give what is no finding in a file: kept back, or kept silent from the start."""
        modules, project = self.link()
        module = modules[relative]
        back = judged.kept_back()
        reported = {finding.place.span for finding in judged.kept}
        for site, found in project.about(module).silent(reported) if module is not None else ():
            reason, message = back.get(site.span, (found.kind, found.text))
            cause = None if site.span in back else found.place
            place = Place(site.file, site.span)
            yield Silenced(place, site.function, site.act.op, site.told, reason, message, cause)

    def link(self) -> tuple[dict[str, Module | None], Project]:
        """Link the files, once: the modules by `relative` (None for what does not parse), and the project."""
        if self._linked is None:
            with self.observer.room("link"):
                self._linked = self._link()
        return self._linked

    def _link(self) -> tuple[dict[str, Module | None], Project]:
        modules = {relative: _link(file) for relative, file in self.files.items()}
        parsed = [module for module in modules.values() if module is not None]
        chosen = self.settings
        known = catalog.extended(chosen.catalog, chosen.catalog_origin, chosen.helper_module)
        project = Project(
            parsed,
            known,
            also={link: modules[file] for link, file in self.links.items()},
            storage=Storage(*self.settings.storage),
            pulse=self.observer.pulse,
        )
        return modules, project

    def _reports(self, code: str, relative: str) -> bool:
        return self.settings.selects(code, relative)

    def _was_asked(self, code: str, relative: str, failed: Container[str]) -> bool:
        """Tell whether all rules that a code or the beginning of codes means have judged a file."""
        meant = [known for known in rules.names() if known.startswith(code)] or [code]
        return all(self._reports(known, relative) and known not in failed for known in meant)

    def narrowed(self, relative: str) -> Run:
        """Give the same run with one file to report on; what was linked is shared."""
        self.link()
        other = copy.copy(self)
        other.targets, other.unreadable = [relative], []
        return other

    def with_sources(self, *changed: Source, without: Container[str] = ()) -> Run:
        """Give the same run with some files replaced, reporting on those alone, and some left out.

        Where only comments and white space differ that move nothing, what was linked is shared.
        """
        other = object.__new__(Run)
        other.settings, other.baseline, other.named = self.settings, self.baseline, self.named
        other.observer, other.jobs = self.observer, self.jobs
        other.unreadable = []
        other.links = self.links
        other.targets = [source.relative for source in changed]
        files = {source.relative: _File(source, extract(source)) for source in changed}
        old = self.files
        same = all(name in old and old[name].facts == file.facts for name, file in files.items())
        other.files = {**{name: file for name, file in old.items() if name not in without}, **files}
        other._linked = self._linked if same and len(other.files) == len(old) else None
        return other

    def _read(self, path: Path, *, report: bool) -> list[Source]:
        """Read a file, and give it unless that failed."""
        with self.observer.room("read"):
            read = source.read(path, self.settings.root)
        if isinstance(read, Unreadable):
            if report:
                self.unreadable.append(read)
            self.observer.step()
            return []
        if report:
            self.targets.append(read.relative)
        return [read]

    def _query(
        self, project: Project, module: Module, problems: list[Problem]
    ) -> tuple[list[Finding], frozenset[str]]:
        """Run every rule that is on for a file; one that fails does not stop the others, and is told."""
        found: list[Finding] = []
        failed: set[str] = set()
        about = project.about(module)
        for loaded in rules.load():
            self.observer.pulse()
            if loaded.check is None or not self._reports(loaded.rule.code, module.relative):
                continue
            try:
                found += loaded.check(about)
            except Exception as error:  # noqa: BLE001  # a rule's bug must not cost the other rules' findings
                failed.add(loaded.rule.code)
                if self._reports(RULE_FAILURE, module.relative):
                    found.append(_failed(loaded, module, error))
                problems.append(
                    Problem(module.path, f"{loaded.rule.code} failed: {type(error).__name__}: {error}")
                )
        return found, frozenset(failed)


def check(
    paths: Sequence[Path],
    load_settings: Callable[[Path], Settings],
    *,
    force_exclude: bool = False,
    silenced: bool = False,
    suppressed: bool = False,
    observer: Observer = SILENT,
    jobs: int = 1,
) -> list[tuple[Run, Checked]]:
    """Check files and folders.

    Args:
        paths: What the user named; each belongs to the project it lies in.
        load_settings: Gives the settings for a path.
        force_exclude: Whether the exclusions hold for what is named too.
        silenced: Whether to list the sites that are no findings too.
        suppressed: Whether to list what comments suppress and the baseline holds too.
        observer: Is told how far it is.
        jobs: The most processes to use.

    Returns:
        The run and its result for each project, in the order in which they were named.

    Raises:
        BaselineError: The settings name a baseline that cannot be used.
    """
    projects: dict[Settings, list[Path]] = {}
    for path in paths:
        projects.setdefault(load_settings(path), []).append(path)
    results = []
    for settings, named in projects.items():
        with observer.room("find"):
            told = observer.leaves_out if observer.curious else None
            found = [*discover.find(named, settings, force_exclude=force_exclude, told=told)]
        run = Run(settings, found, observer, jobs=jobs)
        run.named = tuple(source.absolute_path(path) for path in named)
        results.append((run, run.check(silenced=silenced, suppressed=suppressed)))
    return results


def unreadable(items: Iterable[Unreadable], settings: Settings) -> list[Finding]:
    """Give the findings about files and folders that could not be read, where these are not ignored."""
    return [
        _about_file(UNREADABLE, item.path, item.reason, item.line, item.column)
        for item in items
        if settings.selects(UNREADABLE, item.relative)
    ]


def _link(file: _File) -> Module | None:
    if isinstance(file.facts, SyntaxProblem):
        return None
    return link_module(file.source.path, file.source.relative, file.facts)


def _about_file(code: str, path: str, message: str, line: int = 1, column: int = 1) -> Finding:
    return Finding(
        code=code,
        name=rules.names()[code],
        message=message,
        place=Place(path, Span(line, column, line, column + 1)),
        function="<module>",
        severity=Severity.ERROR,
        evidence="evident",
    )


def _unparsed(file: _File) -> Finding:
    problem = file.facts
    if not isinstance(problem, SyntaxProblem):
        raise TypeError(file.source.path)
    return _about_file(UNREADABLE, file.source.path, problem.reason, problem.line, problem.column)


def _failed(loaded: LoadedRule, module: Module, error: Exception) -> Finding:
    message = f"{loaded.rule.code} ({loaded.rule.name}) failed here: {type(error).__name__}: {error}"
    return _about_file(RULE_FAILURE, module.path, message)
