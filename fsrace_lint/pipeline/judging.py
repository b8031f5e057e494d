"""Decide which findings of a file to report: the profile, comments, and the baseline hold some back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.findings import fingerprints, suppressions
from fsrace_lint.findings.baseline import ABOUT_THE_TOOL
from fsrace_lint.findings.finding import Finding, Severity, Silenced, Suppression
from fsrace_lint.findings.fingerprints import Key
from fsrace_lint.report import Problem
from fsrace_lint.report.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from fsrace_lint.config.settings import Settings
    from fsrace_lint.files.source import Source
    from fsrace_lint.files.spans import Span
    from fsrace_lint.findings.baseline import Baseline


class JudgedFindings(msgspec.Struct, frozen=True):
    """The findings of one file: those to report, and those that are held back, by reason."""

    kept: tuple[Finding, ...]
    unused: tuple[Finding, ...]
    """Findings about codes in comments that suppress nothing."""
    withheld: tuple[Finding, ...]
    """The findings that the profile or a threshold holds back."""
    held: tuple[Suppression, ...] = ()
    """The findings that comments or the baseline suppress, with the reasons."""
    reported: tuple[Key, ...] = ()
    """The baseline keys of the findings to report and of those in the baseline.

    A key occurs as often as a baseline must count it.
    """
    occurring: tuple[Key, ...] = ()
    """The keys of `reported`, plus those of findings that the profile or a threshold holds back."""
    notes: int = 0
    """The number of notes of the profile that a threshold holds back, without suppressed ones."""

    @property
    def suppressed(self) -> tuple[Finding, ...]:
        """The findings that comments suppress."""
        return tuple(one.finding for one in self.held if one.by == "comment")

    def kept_back(self) -> dict[Span, tuple[str, str]]:
        """Return the reason, as a word and as a sentence, for each place with a finding that is held back."""
        back = {
            f.place.span: ("strict" if f.strict else "note", f"{f.code}: {f.message}") for f in self.withheld
        }
        back |= {
            f.place.span: ("suppressed", f"{f.code} is suppressed by a comment") for f in self.suppressed
        }
        known = [one.finding for one in self.held if one.by == "baseline"]
        return back | {f.place.span: ("baseline", f"{f.code} is in the baseline") for f in known}


class FileResult(msgspec.Struct, frozen=True):
    """The result for one file: its findings, failures of rules, and, if requested, unreported operations."""

    judged: JudgedFindings
    problems: tuple[Problem, ...] = ()
    silenced: tuple[Silenced, ...] = ()


def judge(
    source: Source,
    findings: Iterable[Finding],
    baseline: Baseline,
    active: Callable[[str], bool],
    *,
    profile: Settings,
) -> JudgedFindings:
    """Decide which findings of one file to report.

    Args:
        source: The file.
        findings: All findings of the rules in the file.
        baseline: The baseline.
        active: Returns whether a code is enabled in the file.
        profile: The settings, whose profile and thresholds hold findings back.
    """
    # not loaded if the results of all files are cached
    from fsrace_lint import rules  # noqa: PLC0415

    ordered = sorted(findings, key=Finding.sort_key)
    judged = (
        suppressions.Suppressed(tuple(ordered))
        if profile.ignore_noqa
        else suppressions.apply(source, ordered, active, rules.codes())
    )
    lines = Lines({source.path: source})

    def key(finding: Finding) -> Key:
        return fingerprints.key(finding, source.relative, lines.text(finding.place))

    def is_on(finding: Finding) -> bool:
        strict = finding.strict and profile.profile != "strict"
        return not strict and profile.reports(finding.severity.value, finding.confidence)

    about_tool = [f for f in judged.kept if f.code in ABOUT_THE_TOOL]
    silenced = frozenset(judged.suppressed)
    every = sorted((*judged.kept, *judged.suppressed), key=Finding.sort_key)
    keys = [(f, key(f)) for f in every if f.code not in ABOUT_THE_TOOL]
    reported = [(f, known_by) for f, known_by in keys if is_on(f)]
    new, known = baseline.part(reported, silenced)
    commented = [
        Suppression(f, "comment", reason)
        for f, reason in zip(judged.suppressed, judged.reasons, strict=True)
        if is_on(f)
    ]
    return JudgedFindings(
        kept=tuple(sorted((*about_tool, *new), key=Finding.sort_key)),
        unused=judged.unused,
        withheld=tuple(f for f in (*judged.kept, *judged.suppressed) if not is_on(f)),
        held=(*commented, *(Suppression(f, "baseline") for f in known)),
        reported=_counted(reported, silenced),
        notes=sum(f.severity is Severity.NOTE and not f.strict and not is_on(f) for f in judged.kept),
        occurring=_counted(keys, silenced),
    )


def _counted(keys: Iterable[tuple[Finding, Key]], suppressed: Container[Finding]) -> tuple[Key, ...]:
    """Return each key as often as a baseline must count it to hold all findings without a comment.

    A baseline holds the first of equal findings. So suppressed findings count too, up to the last one without
    a comment.
    """
    seen: Counter[Key] = Counter()
    needed: Counter[Key] = Counter()
    for finding, known_by in keys:
        seen[known_by] += 1
        if finding not in suppressed:
            needed[known_by] = seen[known_by]
    return tuple(needed.elements())
