"""The statistics of a run: counts and durations."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fsrace_lint.report import Options, Outcome

_EVIDENCE: Final = ("evident", "likely", "plausible", "none")


def by_rule(outcome: Outcome) -> dict[str, int]:
    """Count the findings by the code of their rule."""
    return dict(sorted(Counter(finding.code for finding in outcome.findings).items()))


def by_evidence(outcome: Outcome) -> dict[str, int]:
    """Count the findings by their evidence, strongest first."""
    tally = Counter(finding.evidence for finding in outcome.findings)
    return {kind: tally[kind] for kind in _EVIDENCE}


def seconds(options: Options) -> dict[str, float]:
    """Return the duration of each phase so far, rounded to milliseconds."""
    taken = options.seconds() if options.seconds is not None else {}
    return {room: round(time, 3) for room, time in taken.items()}


def table(outcome: Outcome, options: Options) -> list[tuple[str, str, str]]:
    """Return the statistics for display.

    Args:
        outcome: The results of the run.
        options: The options of the report.

    Returns:
        Rows of a number, padded to one width, its meaning, and the name of the rule, if it is one.
    """
    names = {finding.code: finding.name for finding in outcome.findings}
    rows = [(str(number), key, "") for key, number in outcome.statistics.items()]
    rows += [(str(number), code, names[code]) for code, number in by_rule(outcome).items()]
    evidence = by_evidence(outcome).items()
    rows += [(str(number), f"evidence {kind}", "") for kind, number in evidence if number]
    rows += [(f"{time:.3f}", f"seconds to {room}", "") for room, time in seconds(options).items()]
    width = max((len(number) for number, _, _ in rows), default=0)
    return [(f"{number:>{width}}", key, name) for number, key, name in rows]
