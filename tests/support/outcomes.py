"""Artificial findings and outcomes, and Hypothesis strategies for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fsrace_lint.files.source import Source
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import (
    Applicability,
    Finding,
    Fix,
    Related,
    Severity,
    Silenced,
    Suppression,
    Tier,
    Witness,
    WitnessStep,
)
from fsrace_lint.report import Outcome, Problem


def source(path: str, text: str) -> Source:
    return Source(
        path=path,
        file=Path(path),
        relative=path,
        data=text.encode("utf-8", "surrogateescape"),
        encoding="utf-8",
        bom=False,
        newline="\n",
        digest="",
    )


def place(path: str, text: str, needle: str) -> Place:
    """Return the place of the first `needle` in `text`, whose lines end in LF or CR LF."""
    begin = text.index(needle)
    end = begin + len(needle)

    def position(offset: int) -> tuple[int, int]:
        return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)

    return Place(path, Span(*position(begin), *position(end)))


def finding(where: Place, **changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "code": "FSR101",
        "name": "check-then-mkdir",
        "message": "another process can create out",
        "place": where,
        "function": "prepare",
        "severity": Severity.ERROR,
        "evidence": "evident",
    }
    return Finding(**{**fields, **changes})


def fix(applicability: Applicability, description: str = "pass exist_ok=True") -> Fix:
    tier = None if applicability is Applicability.SKETCH else Tier.LOCAL
    return Fix("exist-ok", Span(1, 1, 1, 2), applicability, description, tier=tier)


def silenced(where: Place, **changes: Any) -> Silenced:
    fields: dict[str, Any] = {
        "place": where,
        "function": "prepare",
        "operation": "mkdir",
        "call": "os.makedirs(out)",
        "reason": "guard",
        "message": "one process comes here",
    }
    return Silenced(**{**fields, **changes})


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
SPANS = st.builds(Span, *[st.integers(1, 30)] * 4)


PLACES = st.builds(Place, st.one_of(st.just("a.py"), ANY_TEXT), SPANS)
STEPS = st.builds(WitnessStep, st.integers(0, 5), ANY_TEXT, ANY_TEXT)


FINDINGS = st.builds(
    Finding,
    code=st.from_regex("FSR[0-9]{3}", fullmatch=True).filter(str.isascii),
    name=ANY_TEXT,
    message=ANY_TEXT,
    place=PLACES,
    function=ANY_TEXT,
    severity=st.sampled_from(Severity),
    evidence=st.sampled_from(["evident", "plausible", "none"]),
    strict=st.booleans(),
    confidence=st.sampled_from(["high", "medium", "low"]),
    scenario=st.sampled_from(["ranks", "workers", "imports", "calls", "commands", "crash", ""]),
    related=st.lists(st.builds(Related, PLACES, ANY_TEXT), max_size=3).map(tuple),
    witness=st.none() | st.builds(Witness, st.lists(STEPS, max_size=4).map(tuple), ANY_TEXT),
    fix=st.none() | st.builds(Fix, ANY_TEXT, SPANS, st.sampled_from(Applicability), ANY_TEXT),
)


REASONS = [
    "tolerant", "synchronized", "exclusive", "guard", "private", "lock", "handled",
    "first", "preceded", "empty", "callers", "unproven", "unknown", "unexposed", "note", "strict",
    "suppressed", "baseline",
]  # fmt: skip


SILENCED = st.builds(
    Silenced, PLACES, ANY_TEXT, ANY_TEXT, ANY_TEXT, st.sampled_from(REASONS), ANY_TEXT, st.none() | PLACES
)


SUPPRESSED = st.builds(Suppression, FINDINGS, st.sampled_from(["comment", "baseline"]), ANY_TEXT)
OUTCOMES = st.builds(
    Outcome,
    st.lists(FINDINGS, max_size=3).map(tuple),
    st.lists(st.builds(Problem, ANY_TEXT, ANY_TEXT), max_size=2).map(tuple),
    st.dictionaries(ANY_TEXT, st.integers(0, 10**6), max_size=3),
    st.none() | st.lists(SILENCED, max_size=3).map(tuple),
    st.none() | st.lists(SUPPRESSED, max_size=3).map(tuple),
)
