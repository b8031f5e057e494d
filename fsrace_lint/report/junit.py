"""JUnit XML: findings as test results, for Jenkins, GitLab, and others."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from fsrace_lint.report.provenance import help_text
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.report import Options, Outcome, Problem

TOOL: Final = "fsrace-lint"
PASSED: Final = "no filesystem races found"
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:  # noqa: ARG001
    """Return one test suite in ASCII, with a test case for each finding and each failure of the run."""
    cases = [_finding(finding) for finding in outcome.findings]
    cases += [_problem(problem) for problem in outcome.errors]
    _tell_apart(cases)
    counts = {
        "name": TOOL,
        "tests": str(len(cases) or 1),
        "failures": str(len(outcome.findings)),
        "errors": str(len(outcome.errors)),
    }
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {**counts, "skipped": "0"})
    suite.extend(cases or [ET.Element("testcase", {"classname": TOOL, "name": PASSED})])
    ET.indent(root)
    # Non-ASCII characters become character references, so the declared encoding is always correct.
    body = ET.tostring(root, encoding="us-ascii", xml_declaration=False).decode("ascii")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _finding(finding: Finding) -> ET.Element:
    span = finding.place.span
    path = _plain(finding.place.path)
    name = _plain(f"{finding.code} {span.line}:{span.column}")
    case = ET.Element("testcase", {"classname": path, "name": name, "file": path, "line": str(span.line)})
    told = {"message": _plain(finding.message), "type": _plain(f"{finding.code} {finding.name}")}
    ET.SubElement(case, "failure", told).text = "\n".join(map(_plain, _told(finding)))
    return case


def _told(finding: Finding) -> Iterable[str]:
    """Yield the lines of a finding: the message, the related locations, the interleaving, and the fix."""
    yield f"{finding.place.position}: {finding.code} {finding.name}: {finding.message}"
    for related in finding.related:
        yield f"  {related.place.position}: {related.message}"
    if finding.witness:
        for step in finding.witness.steps:
            done = f"{step.action} -> {step.result}" if step.result else step.action
            yield f"  process {step.process}: {done}"
        yield f"  outcome: {finding.witness.outcome}"
    yield f"  severity: {finding.severity.value}, confidence: {finding.confidence}"
    if finding.fix:
        yield f"  fix: {help_text(finding.fix)}"


def _problem(problem: Problem) -> ET.Element:
    path = _plain(problem.path)
    case = ET.Element("testcase", {"classname": path or TOOL, "name": "error"})
    if path:
        case.set("file", path)
    ET.SubElement(case, "error", {"message": _plain(problem.message), "type": "failure"})
    return case


def _tell_apart(cases: Iterable[ET.Element]) -> None:
    """Number the cases with equal names, because a CI system would show only one of them."""
    seen: Counter[tuple[str | None, str | None]] = Counter()
    for case in cases:
        named = (case.get("classname"), case.get("name"))
        seen[named] += 1
        if seen[named] > 1:
            case.set("name", f"{case.get('name')} ({seen[named]})")


def _plain(text: str) -> str:
    """Escape terminal control characters, and characters that XML does not allow."""
    return _NOT_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", visible(text))
