"""One project from its files to its findings: find, read, extract, link, query, suppress."""

from __future__ import annotations

import copy
import functools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.config.settings import with_everywhere, with_nested
from fsrace_lint.engine.parallel.progress import SILENT, Observer
from fsrace_lint.files.source import Source, Unreadable, absolute_path, relative_path
from fsrace_lint.findings import baseline, fingerprints
from fsrace_lint.findings.finding import Finding, Idiom, OwnHelper, Silenced, Suppression
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.discover import Found
from fsrace_lint.pipeline.files import ProjectFile, Reader, Sources
from fsrace_lint.pipeline.judging import FileResult
from fsrace_lint.pipeline.launch_files import LaunchFiles
from fsrace_lint.pipeline.project_cache import CachedResults
from fsrace_lint.report import Outcome, Problem

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.config.settings import Settings
    from fsrace_lint.files.spans import Span
    from fsrace_lint.findings.baseline import Baseline
    from fsrace_lint.pipeline.judging import JudgedFindings
    from fsrace_lint.pipeline.program_list import ListedProgram
    from fsrace_lint.pipeline.project_cache import ProjectCache
    from fsrace_lint.pipeline.reuse import Reuse
    from fsrace_lint.program.modules import Module
    from fsrace_lint.program.name_index import NameIndex

ORDER: Final = "FSR4"
"""The prefix of the rules about the order of processes."""


class Checked(msgspec.Struct, frozen=True):
    """The result of a check.

    Attributes:
        outcome: The findings and counts to report.
        sources: The sources of the reported files, by `Place.path`.
        seen: What a baseline needs to know about the check.
    """

    outcome: Outcome
    sources: Mapping[str, Source]
    seen: baseline.Seen = baseline.NOTHING_SEEN


class Run:
    """One project, read once. It can be checked, and checked again with some files changed."""

    def __init__(
        self,
        settings: Settings,
        targets: Sequence[Path | Found | Unreadable],
        observer: Observer = SILENT,
        *,
        memory: ProjectCache | None = None,
        whole: bool = False,
        jobs: int = 1,
        streaming: bool = False,
        before: Run | None = None,
    ) -> None:
        """Find the files of a project, and read those that are not known.

        Args:
            settings: The settings of the project, without those of other tables.
            targets: The files to report on, and the directories that cannot be listed.
            observer: Receives the progress of this call and of later ones.
            memory: The cache of the project.
            whole: Whether the targets are all files of the project, so that it need not be walked.
            jobs: The maximum number of processes for extraction and queries.
            streaming: Whether to drop each source after extraction. Later accesses to a source may then raise
                `ChangedError`, as with a cache.
            before: An earlier run in this process, with the same settings and current directory. Unchanged
                files are not read again. If all files have the same facts, the linked project is shared.

        Raises:
            SettingsError: The settings contradict each other, or a table below the root is invalid.
            BaselineError: The settings name a baseline that cannot be used.
        """
        self.observer = observer
        self.memory, self.jobs, self.streaming = memory, jobs, streaming
        self.named: tuple[str, ...] = ()
        """The absolute paths that the user named."""
        self.unreadable: list[Unreadable] = [item for item in targets if isinstance(item, Unreadable)]
        self.files: dict[str, ProjectFile] = {}
        self.targets: list[str] = []
        self.listings: discover.FolderListings = discover.FolderListings(
            None if before is None else before.listings
        )
        """The directory listings of the project."""
        readable = [item for item in targets if not isinstance(item, Unreadable)]
        found = [item for item in readable if not (isinstance(item, Found) and item.is_launch)]
        named = [item if isinstance(item, Found) else discover.known(item, settings.root) for item in found]
        with observer.phase("find"):
            listings = None if streaming else self.listings  # no run follows one that streams
            walked = () if whole else discover.look([settings.root], settings, listings=listings)
            seen = [item for item in (*walked, *named) if not isinstance(item, Unreadable)]
            every = {item.path: item for item in seen if not item.is_launch}
            started = [item for item in (*walked, *targets) if isinstance(item, Found) and item.is_launch]
        tables = {item.table.folder: item.table for item in started if item.table is not None}
        self.settings = settings = with_nested(settings, tables.values())
        """The settings of all tables of the project."""
        self.baselines = baseline.of(settings)
        self.launch_files = LaunchFiles(settings, [*started, *filter(_is_packaging, every.values())])
        self.links = discover.links_among([*every.values()], settings.root)
        """Links to files of the project, by relative path. Such a file is read once, by its own name."""
        self.symlinks = frozenset(item.path for item in every.values() if item.is_link)
        """The absolute paths of the files that are links."""
        asked = {self.links.get(item.relative, item.relative) for item in named}
        observer.begins(settings, targets=len(asked), files=len(every) - len(self.links))
        observer.stage("Reading", len(every) - len(self.links))
        own = [item for item in every.values() if item.relative not in self.links]
        packed = None if memory is None else memory.packed
        known, since = ({}, 0) if before is None else (before.files, before.listings.since)
        self._read(own, asked, Reader(settings, packed, known, since))
        self.heads: NameIndex | None = None if before is None else before.heads
        """The name index of the files, as last linked."""
        self.reuse: Reuse | None = None if before is None else before.reuse
        """What the daemon passes from run to run. The previous run can then no longer be used."""
        same = before is not None and before.links == self.links and before.is_launched_as(self)
        self._linked = before.linked_as(self.files) if same and before is not None else None
        self._judged: dict[str, JudgedFindings] = {}
        """The results by file, from `check` or `everything`."""
        self.verdicts = CachedResults(self, None if memory is None else memory.results)

    def _read(self, found: Iterable[Found], asked: Container[str], reader: Reader) -> None:
        with self.observer.phase("read"):
            for item in found:
                read = reader.read(item)
                if isinstance(read, ProjectFile):
                    self.files[read.relative] = read
                    if read.relative in asked:
                        self.targets.append(read.relative)
                elif item.relative in asked:
                    self.unreadable.append(read)
                self.observer.step()

    def load_sources(self) -> None:
        """Read all sources that are not read yet, so that later changes of files do not matter.

        Raises:
            ChangedError: A file changed during the run.
        """
        for file in self.files.values():
            file.load_source()

    def check(self, *, silenced: bool = False, suppressed: bool = False, counted: bool = False) -> Checked:
        """Link the files, run the rules on the targets, and apply the profile, comments, and the baseline.

        Args:
            silenced: Whether to also list operations that were analyzed and not reported.
            suppressed: Whether to also list findings that comments or the baseline suppress.
            counted: Whether to count what linking could not resolve.

        Raises:
            ChangedError: A file changed during the run.
        """
        looked = self._looked(silenced=silenced)
        results = [one.judged for one in looked]
        self._judged = dict(zip(self.targets, results, strict=True))
        findings = [*self._unread(), *(f for result in results for f in (*result.kept, *result.unused))]
        silent = [item for one in looked for item in one.silenced]
        problems = [problem for one in looked for problem in one.problems]
        held = sorted((one for result in results for one in result.held), key=Suppression.sort_key)
        notes = sum(result.notes for result in results)
        by_comment = sum(len(result.suppressed) for result in results)
        counts = {
            "files": len(self.targets) + len(self.unreadable),
            "files-linked": len(self.files),
            "suppressed": by_comment,
            **({"notes": notes} if notes else {}),
            **({"baseline": len(held) - by_comment} if self.baselines else {}),
            **(self._unresolved() if counted else {}),
        }
        ordered = tuple(sorted(findings, key=Finding.sort_key))
        sources = Sources(self.files.values())
        listed = tuple(sorted(silent, key=Silenced.sort_key)) if silenced else None
        taken_out = tuple(held) if suppressed else None
        outcome = Outcome(ordered, tuple(problems), counts, listed, taken_out)
        sources.load_sources(_shown(outcome))
        return Checked(outcome, sources, self._seen(results))

    def _looked(self, *, silenced: bool) -> list[FileResult]:
        """Return the results of the targets. Those that are not cached may be computed in parallel."""
        known = {} if silenced else {relative: self.verdicts.get(relative) for relative in self.targets}
        unknown = [relative for relative in self.targets if known.get(relative) is None]
        if unknown:
            self.link()
            # the first file is judged before workers are forked, and computes the call graph of all files
            unknown.sort(key=lambda relative: not self.files[relative].parsed)
        self.observer.stage("Checking", len(self.targets))
        looked = {name: FileResult(judged) for name, judged in known.items() if judged is not None}
        for _ in looked:
            self.observer.step()
        if unknown:
            looked |= self.judge(unknown, silenced=silenced)
        return [looked[relative] for relative in self.targets]

    def judge(
        self, unknown: Sequence[str], *, silenced: bool = False, counted: bool = True
    ) -> dict[str, FileResult]:
        """Run the rules on some files of the linked project, and return the result of each.

        Args:
            unknown: The paths relative to the project root.
            silenced: Whether to also list operations that were analyzed and not reported.
            counted: Whether the progress counts the files.
        """
        from fsrace_lint.engine.parallel.workers import Task  # noqa: PLC0415  # not needed if all results are cached

        look = Task(functools.partial(self._look, silenced=silenced), FileResult, "query", one_first=True)
        sizes = [self.files[relative].size for relative in unknown]
        observer = self.observer if counted else SILENT
        looked = dict(zip(unknown, look.each(unknown, sizes, self.jobs, observer), strict=True))
        for relative, one in looked.items():
            if not one.problems:
                self.verdicts.put(relative, one.judged)
        return looked

    def _look(self, relative: str, *, silenced: bool) -> FileResult:
        problems: list[Problem] = []
        judged = self.check_file(relative, problems)
        silent = tuple(self._silenced(relative, judged)) if silenced else ()
        return FileResult(judged, tuple(problems), silent)

    def _unread(self) -> list[Finding]:
        if not self.unreadable:
            return []
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # loads the rules, for their names

        return project_link.unreadable(self.unreadable, self.settings)

    def _unresolved(self) -> dict[str, int]:
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # loads the rules, only on request

        return project_link.statistics(self.link()[1])

    def _silenced(self, relative: str, judged: JudgedFindings) -> Iterable[Silenced]:
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # loads the rules, only on request

        return project_link.silenced(self, relative, judged)

    def _seen(self, results: Sequence[JudgedFindings]) -> baseline.Seen:
        parsed = (name for name in self.targets if self.files[name].parsed)
        return baseline.Seen(
            Counter(known_by for result in results for known_by in result.reported),
            Counter(known_by for result in results for known_by in result.occurring),
            frozenset(map(fingerprints.spelled, parsed)),
        )

    def check_file(self, relative: str, problems: list[Problem]) -> JudgedFindings:
        """Run the rules on one file. The project is linked on the first call only.

        In the default profile, a comment is not unused if it suppresses a finding of the strict profile. Nor
        is a comment for a rule that was not run.

        Args:
            relative: The path relative to the project root, one of `files`.
            problems: Failures of rules are appended here.

        Returns:
            The findings of the file, including those that comments, the baseline, or the profile hold back.
        """
        known = self.verdicts.get(relative)
        if known is None:
            before = len(problems)
            from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # loads the rules, only if there is no cached result

            known = project_link.judged(self, relative, problems)
            if len(problems) == before:
                self.verdicts.put(relative, known)
        return known

    def known_or_checked(self, relative: str) -> JudgedFindings:
        """Return the findings of one file from an earlier call, or run the rules."""
        return self._judged.get(relative) or self.check_file(relative, [])

    def judged_of(self, relative: str, found: Sequence[Finding]) -> JudgedFindings:
        """Apply the profile, comments, and the baseline to findings in one file, without running rules.

        Args:
            relative: The path relative to the project root, one of `files`.
            found: The findings of the rules.
        """
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # loads the rules, for their names

        return project_link.judged_of(self, relative, found)

    def everything(self, paths: Container[str] | None, *, counted: bool = False) -> list[Finding]:
        """Return the findings of all rules, whether they are selected or not.

        Args:
            paths: The files to check, as `Place.path`. None for all files of the project.
            counted: Whether the progress counts the files, as a stage.

        Returns:
            The findings of the profile, and all findings about the order of processes. Fixes must not add to
            these.
        """
        wanted = [name for name, file in self.files.items() if paths is None or file.path in paths]
        settings = with_everywhere(self.settings, select=(), ignore=(), baseline="")
        known = self._judged if settings == self.settings else {}
        judged = [known[name] for name in wanted if name in known]
        unknown = [name for name in wanted if name not in known]
        if unknown:
            every = copy.copy(self)
            every.settings, every.verdicts, every.targets = settings, CachedResults(), wanted
            self._linked = every.link()
            if counted:
                self.observer.stage("Verifying", len(unknown))
            unknown.sort(key=lambda relative: not self.files[relative].parsed)
            new = {name: one.judged for name, one in every.judge(unknown, counted=counted).items()}
            judged += new.values()
            if settings == self.settings:
                self._judged = {**known, **new}
        orders = (f for one in judged for f in one.withheld if f.code.startswith(ORDER))
        return sorted([*(f for one in judged for f in one.kept), *orders], key=Finding.sort_key)

    def settings_at(self, path: str) -> Settings:
        """Return the settings that apply to a file, given by its path as reported."""
        return self.settings.of(relative_path(absolute_path(Path(path)), absolute_path(self.settings.root)))

    def baseline_of(self, relative: str) -> Baseline:
        """Return the baseline that applies to a file."""
        return self.baselines.get(self.settings.of(relative).baseline, baseline.NONE)

    def idiom(self, relative: str, span: Span) -> Idiom:
        """Return the spellings of a rank check and a barrier that fit a place in a file."""
        modules, project = self.link()
        module = modules[relative]
        if module is None:
            return Idiom()
        about = project.about(module)
        return Idiom(*about.idioms(span))

    def own_helpers(self, relative: str, kind: str, span: Span) -> tuple[OwnHelper, ...]:
        """Return how a place in a file can use a helper of the project, best first.

        Args:
            relative: The path relative to the project root, one of `files`.
            kind: The key of the helper in the settings, such as `barrier`.
            span: The call.
        """
        modules, project = self.link()
        module = modules[relative]
        if module is None:
            return ()
        chosen = dict(self.settings.of(relative).helpers).get(kind)
        return tuple(OwnHelper(*form) for form in project.about(module).own_helpers(kind, span, chosen))

    def collectives(self, relative: str, span: Span) -> tuple[str, ...]:
        """Return the calls within a span of a file that are collectives."""
        modules, project = self.link()
        module = modules[relative]
        return () if module is None else project.about(module).collectives(span)

    def link(self) -> tuple[dict[str, Module | None], Project]:
        """Link the files on the first call.

        Returns:
            The modules by `relative` (None for a file that does not parse), and the project.
        """
        if self._linked is None:
            from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # loads the rules, only if there is no cached result

            with self.observer.phase("link"):
                self._linked = project_link.linked(self)
        return self._linked

    def list_programs(self) -> tuple[list[ListedProgram], list[str]]:
        """Return the programs in the targets, and warnings about what was not read or does not exist."""
        from fsrace_lint.pipeline import program_list  # noqa: PLC0415  # few runs list programs

        project = self.link()[1]
        files = map(self.files.__getitem__, self.targets)
        warnings = [
            *(f"{item.path}: {item.reason}" for item in self.unreadable),
            *(program_list.unparsed(file.path, file.facts) for file in files if not file.parsed),
        ]
        for launch in project.programs.unmatched():
            what = f"no {launch.target.kind} of the project is `{launch.target.name}`"
            warnings.append(f"{launch.reported}:{launch.line}: {what}")
        return [*program_list.listed(project, frozenset(self.targets))], warnings

    def narrowed(self, relative: str) -> Run:
        """Return a copy of the run that reports on one file. The linked project is shared."""
        self.link()
        other = copy.copy(self)
        other.targets, other.unreadable = [relative], []
        return other

    def with_sources(self, *changed: Source, without: Container[str] = ()) -> Run:
        """Return a run with some files replaced, which reports only on these, and some left out.

        If all files have the same facts, the linked project is shared.
        """
        other = object.__new__(Run)
        other.settings, other.baselines, other.named = self.settings, self.baselines, self.named
        other.observer, other.jobs = self.observer, self.jobs
        other.memory, other.verdicts, other.streaming, other.reuse = None, CachedResults(), False, None
        other.unreadable, other._judged = [], {}
        other.links, other.symlinks, other.listings = self.links, self.symlinks, self.listings
        other.launch_files = self.launch_files
        other.targets = [source.relative for source in changed]
        files = {source.relative: ProjectFile.of(source) for source in changed}
        other.files = {**{name: file for name, file in self.files.items() if name not in without}, **files}
        other.heads, other._linked = self.heads, self.linked_as(other.files)
        return other

    def succeeded_by(self, *changed: Source, without: Container[str] = ()) -> Run:
        """Return the same as `with_sources`, for callers that no longer use this run.

        Results that both runs have in common are not computed again.
        """
        other = self.with_sources(*changed, without=without)
        other.reuse = self.reuse
        return other

    def is_launched_as(self, other: Run) -> bool:
        """Return whether the files of another run contain the same launch commands."""
        return self.launch_files.digest == other.launch_files.digest

    def linked_as(self, files: Mapping[str, ProjectFile]) -> tuple[dict[str, Module | None], Project] | None:
        """Return the linked project if it also holds for other files, because their facts are equal."""
        if self._linked is None or self.files.keys() != files.keys():
            return None
        changed = [(old, files[name]) for name, old in self.files.items() if old is not files[name]]
        same = [old.facts == new.facts for old, new in changed]
        return self._linked if all(same) else None


def _is_packaging(item: Found) -> bool:
    """Return whether a Python file can contain commands that are installed or run."""
    return item.relative.rpartition("/")[2] in {"setup.py", "noxfile.py"}


def _shown(outcome: Outcome) -> set[str]:
    """Return the paths of the files from which reports show lines."""
    findings = [*outcome.findings, *(one.finding for one in outcome.suppressed or ())]
    paths = {finding.place.path for finding in findings}
    paths |= {related.place.path for finding in findings for related in finding.related}
    return paths | {one.place.path for one in outcome.silenced or ()}
