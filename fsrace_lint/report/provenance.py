"""The note about the processes that run a finding, and the help line about its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.findings.finding import Applicability, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.finding import Finding, Fix, Proof

PROVEN: Final = "proven"
"""The status of a finding that a run has proven."""
_SHOWN_CALLS: Final = 2
_CALLED: Final = ", called from "
_SCENARIOS: Final[Mapping[str, str]] = {
    "ranks": "ranks of one job run this: the code checks ranks or calls collectives",
    "workers": "worker processes run this",
    "imports": "every process that imports this module runs this",
    "calls": "any process can call this: nothing in the project limits it to one",
    "commands": "two runs of this command can overlap",
    "crash": "one process that is killed in between is enough",
    "": "nothing in the project shows that multiple processes run this",
}
"""The note if no location shows which processes run the code, by scenario."""


def processes_note(finding: Finding) -> str:
    """Return a sentence about the processes that run the code of a finding, and the evidence for it."""
    reason = next((each for each in finding.related if each.role is Role.REASON), None)
    if finding.scenario == "crash":
        reason = None
    scenario = finding.scenario or ("" if finding.evidence == "none" else "ranks")
    said = _SCENARIOS[scenario] if reason is None else f"{reason.message} ({_line(reason.place)})"
    calls = [f"{each.message} ({_line(each.place)})" for each in finding.related if each.role is Role.CALL]
    more = len(calls) - _SHOWN_CALLS
    chain = "".join(f", {call}" for call in calls[:_SHOWN_CALLS]) + (f", and {more} more" if more > 0 else "")
    here = "this" if finding.function.startswith("<") else f"`{finding.function}()`"
    chain = chain.replace(_CALLED, f"; {here} is called from ", 1).replace(_CALLED, ", ")
    return f"{said}{chain} {confidence(finding)}"


def confidence(finding: Finding) -> str:
    """Return the confidence of a finding, in brackets."""
    return f"[{finding.confidence} confidence]"


def proof_note(proof: Proof) -> str:
    """Return a sentence about a run of the code of a finding."""
    return f"proven by a run: {proof.text}" if proof.status == PROVEN else f"not proven: {proof.text}"


def proof_mark(finding: Finding) -> str:
    """Return ` [proven]` for a finding that a run has proven, otherwise an empty string."""
    return f" [{PROVEN}]" if finding.proof is not None and finding.proof.status == PROVEN else ""


def with_outcome(finding: Finding) -> list[tuple[str, str]]:
    """Return the code, the message, and the outcome in one line; `[*]` marks a safe fix."""
    is_safe = finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    outcome = "" if finding.witness is None else f" ({finding.witness.outcome})"
    return [
        (finding.code, finding.severity.value),
        (" [*]" if is_safe else "", "safe"),
        (f" {finding.message}{outcome}", ""),
        (f" [{finding.severity.value}, {finding.confidence} confidence]", "dim"),
        (proof_mark(finding), "outcome"),
    ]


def help_text(fix: Fix) -> str:
    """Return the description of a fix, with its applicability and tier."""
    return f"{fix.description} ({fix_kind(fix)})"


def fix_kind(fix: Fix) -> str:
    """Return the applicability and tier of a fix: `safe fix`, `manual fix`, or `unsafe: local`."""
    return fix.kind if ":" in fix.kind else f"{fix.kind} fix"


def _line(place: Place) -> str:
    return f"{place.path}:{place.span.line}"
