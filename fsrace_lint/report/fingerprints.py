"""A fingerprint for each finding of a report, which does not depend on line numbers."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from fsrace_lint.findings.fingerprints import Key, key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.report.lines import Lines


def fingerprints(findings: Iterable[Finding], lines: Lines) -> list[str]:
    """Return a unique fingerprint for each finding.

    It is computed from the key of the finding in the baseline, with the path as the report shows it. Findings
    with equal keys are numbered in order.

    Args:
        findings: The findings, in the order of the report.
        lines: The lines of their sources.

    Returns:
        Hexadecimal digits for each finding, in the same order.
    """
    seen: Counter[Key] = Counter()
    found = []
    for finding in findings:
        known_by = key(finding, finding.place.path, lines.text(finding.place))
        seen[known_by] += 1
        text = "\0".join((*known_by, str(seen[known_by])))
        found.append(hashlib.sha256(text.encode("utf-8")).hexdigest()[:40])
    return found
