"""The note about the processes that run a finding, and the help line about its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.findings.finding import Applicability, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.finding import Finding, Fix

_SHOWN_CALLS: Final = 2
_UNPROVEN: Final[Mapping[str, str]] = {
    "evident": "runs in multiple processes, because the code checks ranks or calls collectives",
    "plausible": "may run in multiple processes: nothing in the project rules it out",
    "none": "nothing in the project shows that multiple processes run this",
}
"""The note if no location shows that multiple processes run the code, by evidence."""
APPLICABILITIES: Final[Mapping[Applicability, str]] = {
    Applicability.SAFE: "safe fix",
    Applicability.UNSAFE: "unsafe fix",
    Applicability.SKETCH: "manual fix",
}


def processes_note(finding: Finding) -> str:
    """Return a sentence about the processes that run the code of a finding, and the evidence for it."""
    reason = next((each for each in finding.related if each.role is Role.REASON), None)
    said = _UNPROVEN[finding.evidence] if reason is None else f"{reason.message} ({_line(reason.place)})"
    calls = [_line(each.place) for each in finding.related if each.role is Role.CALL]
    if not calls:
        return said
    more = len(calls) - _SHOWN_CALLS
    return f"{said}; called from {', '.join(calls[:_SHOWN_CALLS])}" + (
        f" and {more} more" if more > 0 else ""
    )


def with_outcome(finding: Finding) -> list[tuple[str, str]]:
    """Return the code, the message, and the outcome in one line; `[*]` marks a safe fix."""
    is_safe = finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    outcome = "" if finding.witness is None else f" ({finding.witness.outcome})"
    return [
        (finding.code, finding.severity.value),
        (" [*]" if is_safe else "", "safe"),
        (f" {finding.message}{outcome}", ""),
    ]


def help_text(fix: Fix) -> str:
    """Return the description of a fix, with its applicability."""
    return f"{fix.description} ({APPLICABILITIES[fix.applicability]})"


def _line(place: Place) -> str:
    return f"{place.path}:{place.span.line}"
