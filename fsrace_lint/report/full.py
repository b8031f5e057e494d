"""The default report: at most ten lines for each finding."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from fsrace_lint.findings.finding import Role
from fsrace_lint.report.layout import Line, Mark, Page, arrow, bar, header, marked, note, with_gutter
from fsrace_lint.report.provenance import help_text, processes_note, proof_note
from fsrace_lint.report.text import compose
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.finding import Finding, Related
    from fsrace_lint.report import Options, Outcome

MOST_LINES: Final = 10
"""The maximum number of lines for a finding."""
_DOTS: Final[Line] = [("...", "gutter")]
_LISTED: Final = 3
"""The maximum number of locations of similar findings to list."""


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Return a few lines for each group of findings with one cause, and a closing line."""
    return compose(outcome, sources, options, _body)


def _body(findings: Sequence[Finding], page: Page) -> Iterator[Line]:
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        alike.setdefault(_cause(finding), []).append(finding)
    for first, *others in alike.values():
        yield from (*_finding(first, [other.place for other in others], page), [])


def _cause(finding: Finding) -> tuple[object, ...]:
    """Return a key that findings of one cause share, such as copies of a function in multiple files."""
    fix = finding.fix and (finding.fix.description, finding.fix.applicability)
    return finding.code, finding.message, finding.severity, finding.confidence, fix, finding.proof


def _second(finding: Finding) -> Related | None:
    return next((each for each in finding.related if each.role is Role.PLACE), None)


def _finding(finding: Finding, others: Sequence[Place], page: Page) -> list[Line]:
    second = _second(finding)
    outcome = "" if finding.witness is None else finding.witness.outcome
    marks = {finding.place: Mark(finding.place.span, "^", finding.severity.value, outcome)}
    if second is not None:
        marks.setdefault(second.place, Mark(second.place.span, "-", "related", second.message))
    shown = {place: mark for place, mark in marks.items() if page.shows(place)}
    page = with_gutter(page, shown)
    notes = [] if finding.witness is None else [("note", processes_note(finding), "")]
    if finding.proof is not None:
        notes.append(("note", proof_note(finding.proof), ""))
    if others:
        places = others if len(others) <= _LISTED + 1 else others[:_LISTED]
        listed = ", ".join(f"{place.path}:{place.span.line}" for place in places)
        more = f", and {len(others) - _LISTED} others" if len(places) < len(others) else ""
        notes.append(("note", f"{count(len(others), 'similar finding')}: {listed}{more}", ""))
    if finding.fix is not None:
        notes.append(("help", help_text(finding.fix), finding.fix.applicability.value))
    below = [line for name, text, style in notes for line in note(name, text, style, page, short=True)]
    top, frame = header(finding, page), _frame(finding.place.path, shown, page)
    if len(top) + len(frame) + len(below) > MOST_LINES:
        frame = [line for line in frame if line != _DOTS]  # the line numbers show the gap
    if second is not None and len(top) + len(frame) + len(below) > MOST_LINES:
        shown.pop(second.place, None)
        frame = _frame(finding.place.path, shown, page)
        frame.append([*arrow(":::", second.place, page), (f": {second.message}", "")])
    spare = MOST_LINES - len(top) - len(frame) - len(below)
    bars = spare if frame else 0
    return [*top, *[bar(page)] * (bars > 0), *frame, *[bar(page)] * (bars > 1), *below]


def _frame(path: str, marks: Mapping[Place, Mark], page: Page) -> list[Line]:
    """Return the marked lines: first those of the finding's file in order, then those of other files."""
    lines: list[Line] = []
    here = sorted((mark for place, mark in marks.items() if place.path == path), key=_line)
    before = None
    for number, group in itertools.groupby(here, key=_line):
        lines += () if before is None else _between(before, number, path, page)
        lines += marked(number, path, list(group), page, short=True)
        before = number
    for place, mark in marks.items():
        if place.path != path:
            lines += [arrow(":::", place, page), *marked(_line(mark), place.path, [mark], page, short=True)]
    return lines


def _line(mark: Mark) -> int:
    return mark.span.line


def _between(before: int, number: int, path: str, page: Page) -> Iterable[Line]:
    """Return the only line between two marked lines, or dots for multiple lines."""
    if number == before + 2:
        return marked(before + 1, path, (), page)
    return [_DOTS] if number > before + 2 else []
