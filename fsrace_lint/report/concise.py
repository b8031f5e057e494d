"""One line for each finding: for pre-commit, logs, and agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.report.provenance import with_outcome
from fsrace_lint.report.text import compose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.report import Options, Outcome
    from fsrace_lint.report.layout import Line, Page


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Return a line for each finding, in which `[*]` marks a safe fix, and a closing line."""
    return compose(outcome, sources, options, _body, " ([*])")


def _body(findings: Sequence[Finding], page: Page) -> Iterator[Line]:  # noqa: ARG001  # no line is laid out
    for finding in findings:
        yield [(finding.place.position, "path"), (": ", ""), *with_outcome(finding)]
