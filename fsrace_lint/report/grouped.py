"""The findings by file: the file name, and a line for each finding."""

from __future__ import annotations

import itertools
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
    """Return the findings of each file below its name, and a closing line."""
    return compose(outcome, sources, options, _body, " ([*])", by_file=True)


def _body(findings: Sequence[Finding], page: Page) -> Iterator[Line]:  # noqa: ARG001  # no line is laid out
    for path, group in itertools.groupby(findings, key=lambda finding: finding.place.path):
        yield [(f"{path}:", "path")]
        rows = [(f"{each.place.span.line}:{each.place.span.column}", each) for each in group]
        width = max(len(where) for where, _ in rows)
        for where, finding in rows:
            yield [(f"  {where:<{width}}  ", "gutter"), *with_outcome(finding)]
        yield []
