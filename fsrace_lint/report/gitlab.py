"""GitLab Code Quality: findings in merge requests and their changes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fsrace_lint.findings.finding import Finding, Severity
from fsrace_lint.report.fingerprints import fingerprints
from fsrace_lint.report.json import written
from fsrace_lint.report.lines import Lines
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.files.source import Source
    from fsrace_lint.report import Options, Outcome
    from fsrace_lint.report.json import Json

SEVERITIES: Final[Mapping[Severity, str]] = MappingProxyType(
    {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}
)


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:  # noqa: ARG001
    """Return one JSON array in ASCII."""
    marks = fingerprints(outcome.findings, Lines(sources))
    issues: list[Json] = [_issue(*pair) for pair in zip(outcome.findings, marks, strict=True)]
    return f"{written(issues)}\n"


def _issue(finding: Finding, fingerprint: str) -> Json:
    told = f"{finding.code} {finding.name}: {finding.message}"
    if finding.witness:
        told += f". Outcome: {finding.witness.outcome}. Confidence: {finding.confidence}."
    span = finding.place.span
    return {
        "description": visible(told),
        "check_name": finding.code,
        "fingerprint": fingerprint,
        "severity": SEVERITIES[finding.severity],
        "location": {"path": finding.place.path, "lines": {"begin": span.line, "end": span.end_line}},
    }
