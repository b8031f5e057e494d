"""The common parts of the reports for people: the order of sections, and the closing line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

from fsrace_lint.findings.finding import Applicability, Finding, Severity, Tier
from fsrace_lint.report import measured
from fsrace_lint.report.layout import NARROWEST, Line, Page, finish, paint
from fsrace_lint.report.lines import Lines
from fsrace_lint.report.suppressions import counted, listed
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Silenced
    from fsrace_lint.report import Options, Outcome, Problem


_NEXT: Final = (
    "Next: `fsrace-lint explain {code}` explains a rule; `--output-format trace` shows how each race happens."
)


class Body(Protocol):
    """Lays out the findings, with separators."""

    def __call__(self, findings: Sequence[Finding], page: Page) -> Iterable[Line]:
        """Return the lines of the findings, in the order of the report."""
        ...


def compose(
    outcome: Outcome,
    sources: Mapping[str, Source],
    options: Options,
    body: Body,
    mark: str = "",
    *,
    by_file: bool = False,
) -> str:
    """Return a report: the findings, then any requested sections, and the closing line.

    Args:
        outcome: The results of a run.
        sources: The sources of the files.
        options: The options of the report.
        body: Lays out the findings.
        mark: The mark of safe fixes, as the closing line shows it.
        by_file: Whether to keep the order of files. Otherwise, the most certain findings come first.
    """
    findings = outcome.findings if by_file else sorted(outcome.findings, key=Finding.certainty_key)
    page = Page(Lines(sources).of, max(options.width, NARROWEST))
    lines: list[Line] = [*body(findings, page)]
    if outcome.silenced is not None:
        lines += [*map(_silenced, outcome.silenced), _tally(outcome.silenced), []]
    if outcome.suppressed:
        lines += [*listed(outcome.suppressed), []]
    if outcome.errors and options.list_errors:
        lines += [*(_problem(problem) for problem in outcome.errors), []]
    if options.statistics:
        rows = measured.table(outcome, options)
        lines += [*([(n, "outcome"), (f"  {key}", ""), (f" {name}", "dim")] for n, key, name in rows), []]
    if options.summary:
        lines += _summary(outcome, options, mark)
    return paint(map(finish, lines), color=options.color)


def _silenced(silenced: Silenced) -> Line:
    cause, where = silenced.cause, ""
    if cause is not None:
        line = cause.span.line
        where = f"line {line}" if cause.path == silenced.place.path else f"{cause.path}:{line}"
    said = f": {silenced.call}: {silenced.message}{f' ({where})' if where else ''}"
    reason = f"not reported: {silenced.reason}"
    return [(silenced.place.position, "path"), (": ", ""), (reason, "dim"), (said, "")]


def _tally(listed: Sequence[Silenced]) -> Line:
    tally = Counter(silenced.reason for silenced in listed).most_common()
    reasons = ", ".join(f"{number} {reason}" for reason, number in tally)
    number = count(len(listed), "call")
    return [(f"Not reported: {number}", "outcome"), (f" ({reasons})." if tally else ".", "")]


def _problem(problem: Problem) -> Line:
    path = [(problem.path, "path"), (": ", "")] if problem.path else []
    return [*path, ("error", "error"), (f": {problem.message}", "")]


def _summary(outcome: Outcome, options: Options, mark: str) -> list[Line]:
    """Return the closing line and, with hints, a line about the next step."""
    findings, more = outcome.findings, counted(outcome)
    if outcome.errors:
        more += f"; {count(len(outcome.errors), 'problem')} prevented a complete check"
    files = outcome.statistics.get("files")
    if not findings:
        if files == 0 or (outcome.errors and not files):
            return []
        where = "" if files is None else f" in {count(files, 'file')}"
        new = "new " if outcome.statistics.get("baseline") else ""
        style = "warning" if outcome.errors else "clean"
        return [[(f"No {new}filesystem races found{where}{more}.", style)]]
    tally = Counter(finding.severity for finding in findings)
    parts = [count(tally[each], each.value) for each in Severity if each in tally]
    files = len({finding.place.path for finding in findings})
    total = parts[0] if len(parts) == 1 else f"{len(findings)} findings ({', '.join(parts)})"
    lines: list[Line] = [
        [(f"Found {total} in {count(files, 'file')}{more}.", "outcome"), (_fixable(findings, mark), "")]
    ]
    if options.hints:
        lines.append([(_NEXT.format(code=findings[0].code), "dim")])
    return lines


def _fixable(findings: Iterable[Finding], mark: str) -> str:
    fixes = (finding.fix_within(tuple(Tier)) for finding in findings)
    tally = Counter(fix.applicability for fix in fixes if fix)
    safe, unsafe = tally[Applicability.SAFE], tally[Applicability.UNSAFE]
    if safe:
        more = f"; up to {unsafe} more with `--unsafe-fixes`" if unsafe else ""
        return f" {safe} fixable with `fsrace-lint fix`{mark}{more}."
    return f" Up to {unsafe} fixable with `fsrace-lint fix --unsafe-fixes`." if unsafe else ""
