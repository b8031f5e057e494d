"""One project from its files to its findings: find, read, extract, link, query, suppress."""

from __future__ import annotations

import copy
import functools
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.engine.parallel.progress import SILENT, Observer
from fsrace_lint.files.source import Source, Unreadable
from fsrace_lint.findings import baseline, fingerprints
from fsrace_lint.findings.finding import Finding, Idiom, Silenced, Suppression
from fsrace_lint.pipeline import discover
from fsrace_lint.pipeline.discover import Found
from fsrace_lint.pipeline.files import ProjectFile, Reader, Sources
from fsrace_lint.pipeline.judging import FileResult
from fsrace_lint.pipeline.project_cache import CachedResults
from fsrace_lint.report import Outcome, Problem

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from pathlib import Path

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.config.settings import Settings
    from fsrace_lint.files.spans import Span
    from fsrace_lint.pipeline.judging import JudgedFindings
    from fsrace_lint.pipeline.project_cache import ProjectCache
    from fsrace_lint.pipeline.reuse import Reuse
    from fsrace_lint.program.modules import Module
    from fsrace_lint.program.name_index import NameIndex

_ORDER: Final = "FSR4"
"""The family of rules about the order of processes."""


class Checked(msgspec.Struct, frozen=True):
    """What a check found, with the sources it reports on by `Place.path`, and what it saw for a baseline."""

    outcome: Outcome
    sources: Mapping[str, Source]
    seen: baseline.Seen = baseline.NOTHING_SEEN


class Run:
    """One project, read once; it can be checked, and checked again with one file changed."""

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
            settings: The settings of the project.
            targets: The files to report on, and the folders that could not be listed.
            observer: Is told how far this is, and later what is done with the run.
            memory: The cache of the project.
            whole: Whether the targets are all files of the project, so that it need not be walked.
            jobs: The most processes to use, to extract the facts of files and to query them.
            streaming: Whether sources are forgotten once they are taken apart. What asks for one later may
                then raise ChangedError, as it may with a cache.
            before: An earlier run in this process, with the same settings and in the same folder. Files that
                have not changed since are not read again; where only comments and white space differ that
                move nothing, what was linked is shared.

        Raises:
            BaselineError: The settings name a baseline that cannot be used.
        """
        self.settings = settings
        self.observer = observer
        self.memory, self.jobs, self.streaming = memory, jobs, streaming
        self.baseline = baseline.of(settings)
        self.named: tuple[str, ...] = ()
        """What the user named, as absolute paths."""
        self.unreadable: list[Unreadable] = [item for item in targets if isinstance(item, Unreadable)]
        self.files: dict[str, ProjectFile] = {}
        self.targets: list[str] = []
        self.listings: discover.FolderListings = discover.FolderListings(
            None if before is None else before.listings
        )
        """What was seen of the folders of the project."""
        found = [item for item in targets if not isinstance(item, Unreadable)]
        named = [item if isinstance(item, Found) else discover.known(item, settings.root) for item in found]
        with observer.phase("find"):
            listings = None if streaming else self.listings  # no other run comes after one that streams
            walked = () if whole else discover.look([settings.root], settings, listings=listings)
            every = {item.path: item for item in (*walked, *named) if not isinstance(item, Unreadable)}
        self.links = discover.links_among([*every.values()], settings.root)
        """Links to files of the project, by relative path; such a file is read once, by its own name."""
        self.symlinks = frozenset(item.path for item in every.values() if item.is_link)
        """The files that are links, as absolute paths."""
        asked = {self.links.get(item.relative, item.relative) for item in named}
        observer.begins(settings, targets=len(asked), files=len(every) - len(self.links))
        observer.stage("Reading", len(every) - len(self.links))
        own = [item for item in every.values() if item.relative not in self.links]
        packed = None if memory is None else memory.packed
        known, since = ({}, 0) if before is None else (before.files, before.listings.since)
        self._read(own, asked, Reader(settings, packed, known, since))
        self.heads: NameIndex | None = None if before is None else before.heads
        """The heads of the files, as they were linked last."""
        self.reuse: Reuse | None = None if before is None else before.reuse
        """What a process that stays hands on from run to run; the one before is of no use then."""
        self._linked = None if before is None or before.links != self.links else before.linked_as(self.files)
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
        """Read all sources that are not read yet: what works on with them finds them as they were.

        Raises:
            ChangedError: A file was changed since this run began.
        """
        for file in self.files.values():
            file.load_source()

    def check(self, *, silenced: bool = False, suppressed: bool = False, counted: bool = False) -> Checked:
        """Link the files, run the rules on the targets, and take out what is suppressed or in the baseline.

        Args:
            silenced: Whether to list the sites that are no findings too.
            suppressed: Whether to list the findings that are taken out too.
            counted: Whether to count what linking could not resolve.

        Returns:
            What was found.

        Raises:
            ChangedError: A file was changed since this run began.
        """
        looked = self._looked(silenced=silenced)
        results = [one.judged for one in looked]
        findings = [*self._unread(), *(f for result in results for f in (*result.kept, *result.unused))]
        silent = [item for one in looked for item in one.silenced]
        problems = [problem for one in looked for problem in one.problems]
        held = sorted((one for result in results for one in result.held), key=Suppression.sort_key)
        by_comment = sum(len(result.suppressed) for result in results)
        counts = {
            "files": len(self.targets) + len(self.unreadable),
            "files-linked": len(self.files),
            "suppressed": by_comment,
            **({"baseline": len(held) - by_comment} if self.settings.baseline else {}),
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
        """Judge the targets, in several processes where that pays, but for those that are known."""
        known = {} if silenced else {relative: self.verdicts.get(relative) for relative in self.targets}
        unknown = [relative for relative in self.targets if known.get(relative) is None]
        if unknown:
            self.link()
            # the first one is judged before workers are forked, and finds out what leads where in all files
            unknown.sort(key=lambda relative: not self.files[relative].parsed)
        self.observer.stage("Checking", len(self.targets))
        looked = {name: FileResult(judged) for name, judged in known.items() if judged is not None}
        for _ in looked:
            self.observer.step()
        if unknown:
            looked |= self._judge(unknown, silenced=silenced)
        return [looked[relative] for relative in self.targets]

    def _judge(self, unknown: Sequence[str], *, silenced: bool) -> dict[str, FileResult]:
        from fsrace_lint.engine.parallel.workers import Task  # noqa: PLC0415  # not needed where all is known

        look = Task(functools.partial(self._look, silenced=silenced), FileResult, "query", one_first=True)
        sizes = [self.files[relative].size for relative in unknown]
        looked = dict(zip(unknown, look.each(unknown, sizes, self.jobs, self.observer), strict=True))
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
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # the rules: needed for their names

        return project_link.unreadable(self.unreadable, self.settings)

    def _unresolved(self) -> dict[str, int]:
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # the rules: not needed where nobody asks

        return project_link.statistics(self.link()[1])

    def _silenced(self, relative: str, judged: JudgedFindings) -> Iterable[Silenced]:
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # the rules: not needed where nobody asks

        return project_link.silenced(self, relative, judged)

    def _seen(self, results: Sequence[JudgedFindings]) -> baseline.Seen:
        parsed = (name for name in self.targets if self.files[name].parsed)
        return baseline.Seen(
            Counter(known_by for result in results for known_by in result.reported),
            Counter(known_by for result in results for known_by in result.occurring),
            frozenset(map(fingerprints.spelled, parsed)),
        )

    def check_file(self, relative: str, problems: list[Problem]) -> JudgedFindings:
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
        known = self.verdicts.get(relative)
        if known is None:
            before = len(problems)
            from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # the rules: not needed where it is known

            known = project_link.judged(self, relative, problems)
            if len(problems) == before:
                self.verdicts.put(relative, known)
        return known

    def judged_of(self, relative: str, found: Sequence[Finding]) -> JudgedFindings:
        """Judge what the rules have found in one file; they are not asked again.

        Args:
            relative: The file's path from the project root, one of `files`.
            found: What they have found.

        Returns:
            As `check_file`.
        """
        from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # the rules: needed for their names

        return project_link.judged_of(self, relative, found)

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
        every.baseline, every.verdicts = baseline.NONE, CachedResults()
        found: list[Finding] = []
        for relative, file in self.files.items():
            if everywhere or file.path in paths:
                judged = every.check_file(relative, [])
                found += (*judged.kept, *(f for f in judged.strict if f.code.startswith(_ORDER)))
        return sorted(found, key=Finding.sort_key)

    def idiom(self, relative: str, span: Span) -> Idiom:
        """Say how a call would test for the main process and wait for all, as its file spells that."""
        modules, project = self.link()
        module = modules[relative]
        return Idiom() if module is None else Idiom(*project.about(module).idioms(span))

    def collectives(self, relative: str, span: Span) -> tuple[str, ...]:
        """Give the calls within a span of a file at which all processes meet."""
        modules, project = self.link()
        module = modules[relative]
        return () if module is None else project.about(module).collectives(span)

    def link(self) -> tuple[dict[str, Module | None], Project]:
        """Link the files, once: the modules by `relative` (None for what does not parse), and the project."""
        if self._linked is None:
            from fsrace_lint.pipeline import project_link  # noqa: PLC0415  # the rules: not needed where it is known

            with self.observer.phase("link"):
                self._linked = project_link.linked(self)
        return self._linked

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
        other.memory, other.verdicts, other.streaming, other.reuse = None, CachedResults(), False, None
        other.unreadable = []
        other.links, other.symlinks, other.listings = self.links, self.symlinks, self.listings
        other.targets = [source.relative for source in changed]
        files = {source.relative: ProjectFile.of(source) for source in changed}
        other.files = {**{name: file for name, file in self.files.items() if name not in without}, **files}
        other.heads, other._linked = self.heads, self.linked_as(other.files)
        return other

    def succeeded_by(self, *changed: Source, without: Container[str] = ()) -> Run:
        """Return the same as `with_sources`, for whoever asks nothing of this run any more.

        What the two have in common is not computed again.
        """
        other = self.with_sources(*changed, without=without)
        other.reuse = self.reuse
        return other

    def linked_as(self, files: Mapping[str, ProjectFile]) -> tuple[dict[str, Module | None], Project] | None:
        """Give what is linked here, if it holds for other files too: their facts are the same."""
        if self._linked is None or self.files.keys() != files.keys():
            return None
        changed = [(old, files[name]) for name, old in self.files.items() if old is not files[name]]
        same = [old.facts == new.facts for old, new in changed]
        return self._linked if all(same) else None


def _shown(outcome: Outcome) -> set[str]:
    """Give the paths that reports show lines of."""
    findings = [*outcome.findings, *(one.finding for one in outcome.suppressed or ())]
    paths = {finding.place.path for finding in findings}
    paths |= {related.place.path for finding in findings for related in finding.related}
    return paths | {one.place.path for one in outcome.silenced or ()}
