"""The JSON format: public, versioned, and specified by `docs/findings.schema.json`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from fsrace_lint.report import measured
from fsrace_lint.report.words import LOG_COMMAND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.files.source import Source
    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.finding import Finding, Fix, Proof, Related, Silenced, Suppression, Witness
    from fsrace_lint.report import Options, Outcome

VERSION: Final = 1
_STEERING: Final = re.compile(rf"[^\x00-\x7e]|{LOG_COMMAND.pattern}")

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:  # noqa: ARG001  # the format shows no source code
    """Return the report as one JSON object."""
    document: dict[str, Json] = {
        "version": VERSION,
        "findings": [_finding(finding) for finding in outcome.findings],
        "errors": [{"path": problem.path, "message": problem.message} for problem in outcome.errors],
        "statistics": {**outcome.statistics, **(_measured(outcome, options) if options.statistics else {})},
    }
    if outcome.silenced is not None:
        document["silenced"] = [_silenced(silenced) for silenced in outcome.silenced]
    if outcome.suppressed is not None:
        document["suppressed"] = [_suppression(held) for held in outcome.suppressed]
    return f"{written(document)}\n"


def _measured(outcome: Outcome, options: Options) -> dict[str, Json]:
    """Return counts of the findings, and the duration of each phase, which is not reproducible."""
    return {
        "rules": {**measured.by_rule(outcome)},
        "evidence": {**measured.by_evidence(outcome)},
        "seconds": {**measured.seconds(options)},
    }


def _finding(finding: Finding) -> Json:
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        **_place(finding.place),
        "function": finding.function,
        "severity": finding.severity.value,
        "confidence": finding.confidence,
        "evidence": finding.evidence,
        "scenario": finding.scenario,
        "strict": finding.strict,
        "related": [_related(related) for related in finding.related],
        "witness": witness(finding.witness) if finding.witness else None,
        "fix": _fix(finding.fix) if finding.fix else None,
        **({"proof": _proof(finding.proof)} if finding.proof else {}),
    }


def _proof(proof: Proof) -> Json:
    return {"status": proof.status, "text": proof.text}


def _suppression(held: Suppression) -> Json:
    return {"finding": _finding(held.finding), "by": held.by, "reason": held.reason or None}


def _silenced(silenced: Silenced) -> Json:
    return {
        **_place(silenced.place),
        "function": silenced.function,
        "operation": silenced.operation,
        "call": silenced.call,
        "reason": silenced.reason,
        "message": silenced.message,
        "cause": None if silenced.cause is None else _place(silenced.cause),
    }


def _place(place: Place) -> dict[str, Json]:
    span = place.span
    return {
        "path": place.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _related(related: Related) -> Json:
    return {**_place(related.place), "message": related.message}


def witness(witness: Witness) -> Json:
    """Return a failing interleaving as JSON data."""
    steps: list[Json] = [
        {"process": step.process, "action": step.action, "result": step.result} for step in witness.steps
    ]
    return {"steps": steps, "outcome": witness.outcome}


def _fix(fix: Fix) -> Json:
    return {
        "recipe": fix.recipe,
        "applicability": fix.applicability.value,
        "tier": None if fix.tier is None else fix.tier.value,
        "description": fix.description,
    }


def written(value: Json) -> str:
    """Return a value, or a part of a report, as indented JSON in ASCII.

    Args:
        value: The value.

    Returns:
        JSON without a final line feed.
    """
    return _plain(msgspec.json.format(msgspec.json.encode(_encodable(value)), indent=2).decode("utf-8"))


def _plain(text: str) -> str:
    """Escape JSON so that it is ASCII, and controls neither a terminal nor the log of a CI service.

    Args:
        text: JSON.

    Returns:
        JSON with the same data.
    """
    return _STEERING.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _encodable(value: Json) -> Json:
    """Escape lone surrogates, which represent undecodable bytes of a path and have no UTF-8 encoding.

    Args:
        value: The value.

    Returns:
        The value without lone surrogates.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {str(_encodable(key)): _encodable(item) for key, item in value.items()}
    return value
