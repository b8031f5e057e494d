"""GitHub workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fsrace_lint.findings.finding import Finding, Severity
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.files.source import Source
    from fsrace_lint.report import Options, Outcome, Problem

LEVELS: Final[Mapping[Severity, str]] = MappingProxyType(
    {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
)


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:  # noqa: ARG001
    """Return one workflow command on each line, findings first."""
    commands = [_finding(finding) for finding in outcome.findings]
    commands += [_problem(problem) for problem in outcome.errors]
    return "".join(f"{command}\n" for command in commands)


def _finding(finding: Finding) -> str:
    span = finding.place.span
    properties = {"file": finding.place.path, "line": str(span.line)}
    # GitHub rejects columns in an annotation that spans multiple lines.
    if span.line == span.end_line:
        properties |= {"col": str(span.column), "endLine": str(span.end_line)}
        properties["endColumn"] = str(span.end_column)
    else:
        properties["endLine"] = str(span.end_line)
    properties["title"] = f"{finding.code} {finding.name} ({finding.confidence} confidence)"
    message = finding.message
    if finding.witness:
        message += f"\nOutcome: {finding.witness.outcome}"
    return _command(LEVELS[finding.severity], properties, message)


def _problem(problem: Problem) -> str:
    properties = {"file": problem.path} if problem.path else {}
    properties["title"] = "fsrace-lint error"
    return _command("error", properties, problem.message)


def _command(level: str, properties: Mapping[str, str], message: str) -> str:
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{level} {listed}::{visible(_data(message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return visible(_data(text)).replace(":", "%3A").replace(",", "%2C")
