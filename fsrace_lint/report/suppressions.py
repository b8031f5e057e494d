"""The findings that comments or the baseline suppress, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.findings.finding import Suppression
    from fsrace_lint.report import Outcome


def listed(held: Iterable[Suppression]) -> list[list[tuple[str, str]]]:
    """Return a line of text and style pairs for each suppressed finding."""
    lines = []
    for one in held:
        finding = one.finding
        reason = f" ({one.reason})" if one.reason else ""
        said = f": {finding.code} {finding.name}: {finding.message}{reason}"
        lines.append(
            [(finding.place.position, "path"), (": ", ""), (f"suppressed: {one.by}", "dim"), (said, "")]
        )
    return lines


def counted(outcome: Outcome) -> str:
    """Return the part of the closing line about findings that are suppressed or below a threshold."""
    in_baseline = outcome.statistics.get("baseline", 0)
    by_comment = 0 if outcome.suppressed is None else outcome.statistics.get("suppressed", 0)
    suppressed = f"; {by_comment} suppressed by comments" if by_comment else ""
    notes = outcome.statistics.get("notes", 0)
    below = f"; {count(notes, 'note')} not shown, see `--min-severity note`" if notes else ""
    return suppressed + (f"; {in_baseline} in the baseline" if in_baseline else "") + below
