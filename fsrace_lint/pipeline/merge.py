"""Merge the results of multiple projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.findings.finding import Finding, Silenced, Suppression
from fsrace_lint.pipeline.files import Joined
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report import Outcome, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fsrace_lint.files.source import Source


def merge(results: Iterable[Checked]) -> Checked:
    """Merge the results of multiple projects into one."""
    findings: list[Finding] = []
    errors: list[Problem] = []
    statistics: dict[str, int] = {}
    sources: list[Mapping[str, Source]] = []
    silenced: list[Silenced] | None = None
    suppressed: list[Suppression] | None = None
    for checked in results:
        findings += checked.outcome.findings
        if checked.outcome.silenced is not None:
            silenced = [*(silenced or ()), *checked.outcome.silenced]
        if checked.outcome.suppressed is not None:
            suppressed = [*(suppressed or ()), *checked.outcome.suppressed]
        errors += checked.outcome.errors
        sources.append(checked.sources)
        for key, count in checked.outcome.statistics.items():
            statistics[key] = statistics.get(key, 0) + count
    once = sorted(dict.fromkeys(findings), key=Finding.sort_key)
    listed = None if silenced is None else tuple(sorted(dict.fromkeys(silenced), key=Silenced.sort_key))
    held = None if suppressed is None else sorted(dict.fromkeys(suppressed), key=Suppression.sort_key)
    taken_out = None if held is None else tuple(held)
    return Checked(Outcome(tuple(once), tuple(errors), statistics, listed, taken_out), Joined(sources))
