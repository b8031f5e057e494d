"""The order of the rooms: find, read, extract, link, query, suppress, repair."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from fsrace_lint import catalog, rules, source, suppress
from fsrace_lint.facts.extract import SyntaxProblem, extract
from fsrace_lint.facts.model import FileFacts
from fsrace_lint.findings import Applicability, Finding, Severity
from fsrace_lint.project.modules import link_module
from fsrace_lint.project.queries import Project
from fsrace_lint.report import Outcome, Problem
from fsrace_lint.source import Source, Unreadable
from fsrace_lint.spans import Place, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from fsrace_lint.fixes import Patch
    from fsrace_lint.project.modules import Module
    from fsrace_lint.rules import LoadedRule
    from fsrace_lint.settings import Settings

UNREADABLE = "FSR001"
RULE_FAILURE = "FSR002"


class Checked(msgspec.Struct, frozen=True):
    """What a check found, with the sources it reports on by `Place.path`."""

    outcome: Outcome
    sources: dict[str, Source]


class _File(msgspec.Struct, frozen=True):
    """One file as far as it could be read: its facts, or the reason why there are none."""

    source: Source
    facts: FileFacts | SyntaxProblem


class Run:
    """One project, read once; it can be checked, and checked again with one file changed."""

    def __init__(self, settings: Settings, targets: Sequence[Path | Unreadable]) -> None:
        """Read the files of a project.

        Args:
            settings: The settings of the project.
            targets: The files to report on, and the folders that could not be listed.
        """
        self.settings = settings
        self.unreadable: list[Unreadable] = [item for item in targets if isinstance(item, Unreadable)]
        self.files: dict[str, _File] = {}
        self.targets: list[str] = []
        wanted = {os.fspath(item): item for item in targets if not isinstance(item, Unreadable)}
        for path in source.find_all(settings):
            wanted_here = wanted.pop(os.fspath(path), None) is not None
            self._read(path, report=wanted_here)
        for path in wanted.values():
            self._read(path, report=True)

    def check(self) -> Checked:
        """Link the files, run the rules on the targets, and take out what is suppressed."""
        modules = {relative: _link(file) for relative, file in self.files.items()}
        project = Project([module for module in modules.values() if module is not None], catalog.load())
        findings: list[Finding] = [_unreadable(item) for item in self.unreadable]
        problems: list[Problem] = []
        suppressed = 0
        for relative in self.targets:
            file, module = self.files[relative], modules[relative]
            found = [_unparsed(file)] if module is None else self._query(project, module, problems)
            kept = self._suppress(file.source, found)
            suppressed += len(kept.suppressed)
            findings += kept.kept
            findings += kept.unused
        statistics = {
            "files": len(self.targets) + len(self.unreadable),
            "files-linked": len(self.files),
            "suppressed": suppressed,
            **project.statistics(),
        }
        ordered = tuple(sorted(findings, key=Finding.sort_key))
        sources = {file.source.path: file.source for file in self.files.values()}
        return Checked(Outcome(ordered, tuple(problems), statistics), sources)

    def with_source(self, changed: Source) -> Run:
        """Give the same run with one file replaced, reporting on that file alone."""
        other = object.__new__(Run)
        other.settings = self.settings
        other.unreadable = []
        other.targets = [changed.relative]
        other.files = {**self.files, changed.relative: _File(changed, extract(changed))}
        return other

    def _read(self, path: Path, *, report: bool) -> None:
        read = source.read(path, self.settings.root)
        if isinstance(read, Unreadable):
            if report:
                self.unreadable.append(read)
            return
        self.files[read.relative] = _File(read, extract(read))
        if report:
            self.targets.append(read.relative)

    def _query(self, project: Project, module: Module, problems: list[Problem]) -> list[Finding]:
        """Run every rule that is on for a file; one that fails does not stop the others."""
        found: list[Finding] = []
        about = project.about(module)
        for loaded in rules.load():
            if loaded.check is None or not self.settings.selects(loaded.rule.code, module.relative):
                continue
            try:
                found += [f for f in loaded.check(about) if not f.strict or self.settings.profile == "strict"]
            except Exception as error:  # noqa: BLE001  # a rule's bug must not cost the other rules' findings
                found.append(_failed(loaded, module, error))
                problems.append(
                    Problem(module.path, f"{loaded.rule.code} failed: {type(error).__name__}: {error}")
                )
        return found

    def _suppress(self, file: Source, found: Sequence[Finding]) -> suppress.Suppressed:
        def active(code: str) -> bool:
            return self.settings.selects(code, file.relative)

        return suppress.apply(file, sorted(found, key=Finding.sort_key), active)


def check(paths: Sequence[Path], load_settings: Callable[[Path], Settings]) -> list[tuple[Run, Checked]]:
    """Check files and folders.

    Args:
        paths: What the user named; each belongs to the project it lies in.
        load_settings: Gives the settings for a path.

    Returns:
        The run and its result for each project, in the order in which they were named.
    """
    by_root: dict[Path, tuple[Settings, list[Path]]] = {}
    for path in paths:
        settings = load_settings(path)
        by_root.setdefault(settings.root, (settings, []))[1].append(path)
    results = []
    for settings, named in by_root.values():
        run = Run(settings, list(source.find(named, settings)))
        results.append((run, run.check()))
    return results


def merge(results: Iterable[Checked]) -> Checked:
    """Join the results of several projects into one."""
    findings: list[Finding] = []
    errors: list[Problem] = []
    statistics: dict[str, int] = {}
    sources: dict[str, Source] = {}
    for checked in results:
        findings += checked.outcome.findings
        errors += checked.outcome.errors
        sources |= checked.sources
        for key, count in checked.outcome.statistics.items():
            statistics[key] = statistics.get(key, 0) + count
    return Checked(Outcome(tuple(sorted(findings, key=Finding.sort_key)), tuple(errors), statistics), sources)


def repair(run: Run, checked: Checked, *, unsafe: bool) -> list[Patch]:
    """Turn the fixes of a check into patches; nothing is written.

    Args:
        run: The run that was checked.
        checked: Its result.
        unsafe: Whether fixes that need a reader are wanted too.

    Returns:
        A patch for each file with a fix, in the order of the files.
    """
    from fsrace_lint import fixes  # noqa: PLC0415  # libcst is loaded only where something is to be fixed

    allowed = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}
    by_path: dict[str, list[Finding]] = {}
    for finding in checked.outcome.findings:
        if finding.fix is not None and finding.fix.applicability in allowed:
            by_path.setdefault(finding.place.path, []).append(finding)
    patches = []
    for path, wanted in by_path.items():
        before = checked.sources[path]
        reported = [finding for finding in checked.outcome.findings if finding.place.path == path]
        patches.append(fixes.repair(before, wanted, _verifier(run, reported)))
    return patches


def write(patch: Patch) -> str | None:
    """Write a patch.

    Args:
        patch: The patch.

    Returns:
        None if the file is as the patch says, else why it was left alone.
    """
    from fsrace_lint.fixes import apply  # noqa: PLC0415  # loaded where something was repaired

    return apply.write(patch)


def _verifier(run: Run, reported: Sequence[Finding]) -> Callable[[Source, tuple[Finding, ...]], str | None]:
    """Make the check that a repaired file passes: the findings are gone, and nothing new appeared."""

    def verify(changed: Source, fixed: tuple[Finding, ...]) -> str | None:
        left = [_identity(finding) for finding in run.with_source(changed).check().outcome.findings]
        expected = [_identity(finding) for finding in reported if finding not in fixed]
        for identity in expected:
            if identity in left:
                left.remove(identity)
        if not left:
            return None
        code, function, message = left[0]
        known = {_identity(finding) for finding in fixed}
        if left[0] in known:
            return f"{code} would still be reported"
        return f"it would bring {code} into {function}: {message}"

    return verify


def _identity(finding: Finding) -> tuple[str, str, str]:
    message = finding.message.partition(" after the check on line ")[0]
    return finding.code, finding.function, message


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


def _unreadable(item: Unreadable) -> Finding:
    return _about_file(UNREADABLE, item.path, item.reason, item.line, item.column)


def _unparsed(file: _File) -> Finding:
    problem = file.facts
    if not isinstance(problem, SyntaxProblem):
        raise TypeError(file.source.path)
    return _about_file(UNREADABLE, file.source.path, problem.reason, problem.line, problem.column)


def _failed(loaded: LoadedRule, module: Module, error: Exception) -> Finding:
    message = f"{loaded.rule.code} ({loaded.rule.name}) failed here: {type(error).__name__}: {error}"
    return _about_file(RULE_FAILURE, module.path, message)
