"""What a finding is known by in the next run, when its lines have moved."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.findings import Finding
    from fsrace_lint.report.lines import Lines


def fingerprints(findings: Iterable[Finding], lines: Lines) -> list[str]:
    """Give each finding a fingerprint that no other has.

    It is made of the rule, the path, the function and the text of the line without
    its white space, so it stays when lines are added above. Findings that are equal
    in all of these are counted, from the top.

    Args:
        findings: The findings, in the order in which they are reported.
        lines: The lines of their sources.

    Returns:
        Hexadecimal digits for each, in the same order.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for finding in findings:
        line = "".join(lines.first(finding.place).split())
        known_by = (finding.code, finding.place.path, finding.function, line)
        seen[known_by] += 1
        text = "\0".join((*known_by, str(seen[known_by])))
        found.append(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40])
    return found
