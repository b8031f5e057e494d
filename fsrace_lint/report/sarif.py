"""SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

import os
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from fsrace_lint.findings.finding import Finding, Severity
from fsrace_lint.report import RuleInfo
from fsrace_lint.report.fingerprints import fingerprints
from fsrace_lint.report.json import written
from fsrace_lint.report.lines import Lines
from fsrace_lint.report.pages import paragraphs
from fsrace_lint.report.provenance import help_text
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.files.spans import Place, Span
    from fsrace_lint.findings.finding import Witness, WitnessStep
    from fsrace_lint.report import Options, Outcome, Preview, Problem, Tool
    from fsrace_lint.report.json import Json

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/cos02/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "fsraceFinding/v1"
LEVELS: Final[Mapping[Severity, str]] = MappingProxyType(
    {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
)
PROBLEMS: Final[Mapping[Severity, str]] = MappingProxyType(
    {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}
)
PRECISIONS: Final[Mapping[str, str]] = MappingProxyType(
    {"evident": "high", "likely": "high", "plausible": "medium"}
)
NOT_CHECKED: Final = "FSR001"
_RESULTS: Final = '"results": []'
_WITHIN: Final = "\n" + 8 * " "
"""The line break and indentation within a result, which is a list item in another list item."""
# Text that a SARIF viewer would treat as an argument placeholder.
_ARGUMENT: Final = re.compile(r"\{(\d+)\}")


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Return one SARIF log with one run, as JSON in ASCII."""
    lines = Lines(sources)
    rules = _known(options.tool, outcome.findings)
    index = {rule.code: number for number, rule in enumerate(rules)}
    marks = fingerprints(outcome.findings, lines)
    previews = outcome.previews or {}
    # each result is serialized immediately, because the data of all results takes ten times the memory
    results = [
        written(
            {
                **_result(finding, index, lines, previews.get(finding)),
                "partialFingerprints": {FINGERPRINT: mark},
            }
        ).replace("\n", _WITHIN)
        for finding, mark in zip(outcome.findings, marks, strict=True)
    ]
    driver: dict[str, Json] = {"name": "fsrace-lint", "rules": [_rule(rule) for rule in rules]}
    if options.tool.version:
        driver["semanticVersion"] = options.tool.version
    run: dict[str, Json] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The directory in which fsrace-lint was started."}}
        },
        "invocations": [_invocation(outcome)],
        "results": [],
    }
    above, key, below = written({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}).rpartition(_RESULTS)
    listed = f"[{_WITHIN}{f',{_WITHIN}'.join(results)}{_WITHIN[:-2]}]" if results else "[]"
    return f"{above}{key.removesuffix('[]')}{listed}{below}\n"


def _known(tool: Tool, findings: Sequence[Finding]) -> Sequence[RuleInfo]:
    """Return the rules of the tool, and the rules of the findings that the tool does not list."""
    rules = {rule.code: rule for rule in tool.rules}
    for finding in findings:
        rules.setdefault(finding.code, RuleInfo(finding.code, finding.name, finding.name, finding.severity))
    return list(rules.values())


def _rule(rule: RuleInfo) -> Json:
    title, *rest = paragraphs(rule.page)
    properties: dict[str, Json] = {
        # Rules about the tool itself are certain; rules of the strict profile are the least certain.
        "precision": PRECISIONS.get(rule.evidence, "low") if rule.cwe else "very-high",
        "problem.severity": PROBLEMS[rule.severity],
    }
    if rule.cwe:
        properties["tags"] = [f"external/cwe/cwe-{rule.cwe:03}"]
    said = rule.page.split("\n\n", 2)
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": title},
        "fullDescription": {"text": " ".join((said[1] if len(said) > 1 else title).split())},
        "help": {"text": rule.page, "markdown": "\n\n".join([title, *rest])},
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
        "properties": properties,
    }


def _properties(finding: Finding, preview: Preview | None) -> dict[str, Json]:
    properties: dict[str, Json] = {
        "confidence": finding.confidence,
        "evidence": finding.evidence,
        "strict": finding.strict,
    }
    if finding.proof:
        properties["proof"] = {"status": finding.proof.status, "text": visible(finding.proof.text)}
    if finding.fix:
        properties["fix"] = visible(finding.fix.description)
        properties["applicability"] = finding.fix.applicability.value
        if finding.fix.tier:
            properties["tier"] = finding.fix.tier.value
    if preview and preview.refusal:
        properties["refusal"] = visible(preview.refusal)
    return properties


def _fixes(finding: Finding, preview: Preview | None) -> Json:
    """Return the edits of a fix, last position first, so that no edit moves a following one."""
    if finding.fix is None or preview is None or not preview.edits:
        return []
    replacements: list[Json] = [
        {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
        for edit in reversed(preview.edits)
    ]
    change: Json = {"artifactLocation": _artifact(finding.place.path), "replacements": replacements}
    return [{"description": _message(help_text(finding.fix)), "artifactChanges": [change]}]


def _result(
    finding: Finding, index: Mapping[str, int], lines: Lines, preview: Preview | None
) -> dict[str, Json]:
    place = _location(finding.place)
    if not finding.function.startswith("<"):
        place["logicalLocations"] = [{"fullyQualifiedName": visible(finding.function), "kind": "function"}]
    told = f"{finding.message}. Outcome: {finding.witness.outcome}." if finding.witness else finding.message
    result: dict[str, Json] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": LEVELS[finding.severity],
        "message": _message(told),
        "locations": [place],
        "properties": _properties(finding, preview),
    }
    if fixes := _fixes(finding, preview):
        result["fixes"] = fixes
    if finding.related:
        result["relatedLocations"] = [
            {"id": number, **_location(related.place), "message": _message(related.message)}
            for number, related in enumerate(finding.related, 1)
        ]
    if finding.witness and finding.witness.steps:
        result["codeFlows"] = [_flow(finding, finding.witness, lines)]
    return result


def _flow(finding: Finding, witness: Witness, lines: Lines) -> Json:
    """Return the failing interleaving: a flow for each process, and the order of all steps."""
    flows: dict[int, list[Json]] = {}
    for order, step in enumerate(witness.steps, 1):
        done = f"{step.action} -> {step.result}" if step.result else step.action
        told = _message(f"process {step.process}: {done}")
        where = _location(_where(step, finding, lines))
        flows.setdefault(step.process, []).append(
            {"location": {**where, "message": told}, "executionOrder": order}
        )
    threads: list[Json] = [
        {"id": f"process {process}", "locations": flows[process]} for process in sorted(flows)
    ]
    return {"message": _message(witness.outcome), "threadFlows": threads}


def _where(step: WitnessStep, finding: Finding, lines: Lines) -> Place:
    """Return the place whose text matches a step, or else the place of the finding; a viewer needs one."""
    places = [finding.place, *(related.place for related in finding.related)]
    spelled = [(place, _spelling(lines.text(place))) for place in places]
    said = _spelling(step.action)
    called, _, arguments = said.partition("(")
    same = [place for place, text in spelled if said and text == said][:1]
    if not same and arguments:
        same = [place for place, text in spelled if text.startswith(f"{called}(")]
    return same[0] if len(same) == 1 else finding.place


def _spelling(code: str) -> str:
    return "".join(code.split()).replace('"', "'")


def _invocation(outcome: Outcome) -> Json:
    notes: list[Json] = [_note(problem) for problem in outcome.errors]
    for finding in outcome.findings:
        if finding.code == NOT_CHECKED:
            about: Json = {
                "level": "warning",
                "message": _message(finding.message),
                "locations": [_location(finding.place)],
                "associatedRule": {"id": finding.code},
            }
            notes.append(about)
    return {"executionSuccessful": not outcome.errors, "toolExecutionNotifications": notes}


def _note(problem: Problem) -> Json:
    note: dict[str, Json] = {"level": "error", "message": _message(problem.message)}
    if problem.path:
        note["locations"] = [{"physicalLocation": {"artifactLocation": _artifact(problem.path)}}]
    return note


def _message(text: str) -> dict[str, Json]:
    """Return a message whose text is literal: without links and argument placeholders."""
    plain = visible(text)
    if "](" in plain:
        plain = plain.replace("[", "\\[").replace("]", "\\]")
    return {"text": _ARGUMENT.sub(r"{{\1}}", plain)}


def _location(place: Place) -> dict[str, Json]:
    return {"physicalLocation": {"artifactLocation": _artifact(place.path), "region": _region(place.span)}}


def _region(span: Span) -> dict[str, Json]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _artifact(path: str) -> dict[str, Json]:
    """Return the URI of a file: relative below the current directory, otherwise absolute."""
    drive, rest = os.path.splitdrive(path)
    if not rest.startswith("/"):
        return {"uri": _quoted(path), "uriBaseId": ROOT}
    if drive.startswith("//"):
        return {"uri": f"file:{drive}{_quoted(rest)}"}
    return {"uri": f"file://{'/' * bool(drive)}{drive}{_quoted(rest)}"}


def _quoted(path: str) -> str:
    try:
        return quote(path.encode("utf-8", "surrogateescape"), safe="/")
    except UnicodeEncodeError:  # surrogates that represent no byte
        return quote(path.encode("utf-8", "surrogatepass"), safe="/")
