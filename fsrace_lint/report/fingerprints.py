"""One fingerprint for each finding of a report, which stays when lines have moved."""

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
    """Give each finding a fingerprint that no other has.

    It is made of what the baseline knows a finding by, with the path as the report names
    it. Findings that are equal in all of this are counted, from the top.

    Args:
        findings: The findings, in the order in which they are reported.
        lines: The lines of their sources.

    Returns:
        Hexadecimal digits for each, in the same order.
    """
    seen: Counter[Key] = Counter()
    found = []
    for finding in findings:
        known_by = key(finding, finding.place.path, lines.text(finding.place))
        seen[known_by] += 1
        text = "\0".join((*known_by, str(seen[known_by])))
        found.append(hashlib.sha256(text.encode("utf-8")).hexdigest()[:40])
    return found
