"""The longest report for people: every frame of each finding, and the failing interleaving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.report.cells import cell_len
from fsrace_lint.report.layout import (
    Line,
    Mark,
    Page,
    arrow,
    bar,
    finish,
    header,
    marked,
    note,
    paint,
    with_gutter,
    wrap,
)
from fsrace_lint.report.provenance import help_text, processes_note, proof_note
from fsrace_lint.report.text import compose
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Finding, Related, Witness
    from fsrace_lint.report import Options, Outcome

_NARROWEST_COLUMN: Final = 16
_MERGE_WITHIN: Final = 3


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Return each finding with all frames and its failing interleaving, and a closing line."""
    return compose(outcome, sources, options, _findings)


def timeline(witness: Witness, width: int) -> str:
    """Draw a failing interleaving, indented by four spaces, with its outcome below it."""
    drawn = paint(map(finish, _witness(witness, Page(lambda _: (), width))), color=False)
    return drawn.replace("\n  = ", "\n    ").rstrip("\n")


def _findings(findings: Iterable[Finding], page: Page) -> Iterable[Line]:
    for finding in findings:
        yield from (*_finding(finding, page), [])


def _finding(finding: Finding, page: Page) -> list[Line]:
    near, far = _split(finding, page)
    page = with_gutter(page, [finding.place, *(related.place for related in (*near, *far))], context=1)
    lines = header(finding, page)
    if page.shows(finding.place):
        marks = [Mark(finding.place.span, "^", finding.severity.value)]
        marks += [Mark(item.place.span, "-", "related", item.message) for item in near]
        lines += _frame(finding.place.path, marks, page, context=1)
    for item in far:
        lines += _far(item, page)
    below = [] if finding.witness is None else _witness(finding.witness, page)
    if finding.scenario or finding.evidence == "none":
        below += note("note", processes_note(finding), "", page)
    if finding.proof is not None:
        below += note("note", proof_note(finding.proof), "", page)
    if finding.fix is not None:
        below += note("help", help_text(finding.fix), finding.fix.applicability.value, page)
    return [*lines, *[bar(page)] * (bool(below) and lines[-1] != bar(page)), *below]


def _split(finding: Finding, page: Page) -> tuple[list[Related], list[Related]]:
    """Separate the related places that share the frame of the finding from the others."""
    near: list[Related] = []
    far: list[Related] = []
    for related in finding.related:
        same = related.place.path == finding.place.path and page.shows(related.place)
        distance = abs(related.place.span.line - finding.place.span.line)
        (near if same and distance <= _MERGE_WITHIN and page.shows(finding.place) else far).append(related)
    return near, far


def _far(related: Related, page: Page) -> list[Line]:
    lines = [[*arrow(":::", related.place, page), (f": {related.message}", "")]]
    if page.shows(related.place):
        lines += _frame(related.place.path, [Mark(related.place.span, "-", "related")], page, context=0)
    return lines


def _frame(path: str, marks: Sequence[Mark], page: Page, context: int) -> list[Line]:
    source = page.lines(path)
    first = max(1, min(mark.span.line for mark in marks) - context)
    last = min(len(source), max(mark.span.line for mark in marks) + context)
    lines: list[Line] = [bar(page)]
    for number in range(first, last + 1):
        here = [mark for mark in marks if mark.span.line == number]
        if here or number not in {first, last} or source[number - 1].strip():
            lines += marked(number, path, here, page)
    return [*lines, bar(page)]


def _witness(witness: Witness, page: Page) -> list[Line]:
    processes = sorted({step.process for step in witness.steps})
    acts = [
        (step.process, visible(f"{step.action} -> {step.result}" if step.result else step.action))
        for step in witness.steps
    ]
    room = page.width - page.gutter - 3
    widths = _widths(acts, processes, room)
    rows = _columns(acts, processes, widths) if widths else _list(acts, room)
    indent = (" " * (page.gutter + 3), "")
    lines: list[Line] = [[indent, *row] for row in rows]
    return [*lines, *note("outcome", witness.outcome, "outcome", page)]


def _widths(acts: Sequence[tuple[int, str]], processes: Sequence[int], room: int) -> list[int]:
    """Size the columns to their contents, and shrink the widest ones to fit; return [] if they cannot fit."""
    widths = [
        max(len(f"process {process}"), *(cell_len(text) for who, text in acts if who == process))
        for process in processes
    ]
    room -= 3 * (len(widths) - 1)
    if sum(min(width, _NARROWEST_COLUMN) for width in widths) > room:
        return []
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    return widths


def _columns(
    acts: Sequence[tuple[int, str]], processes: Sequence[int], widths: Sequence[int]
) -> Iterable[Line]:
    titles = [f"process {process}" for process in processes]
    yield _row(titles, widths, "heading")
    yield [("-+-".join("-" * width for width in widths), "gutter")]
    for process, text in acts:
        column = processes.index(process)
        for part in wrap(text, widths[column], hang=2):
            yield _row(["" if other != column else part for other in range(len(widths))], widths, "")


def _row(texts: Sequence[str], widths: Sequence[int], style: str) -> Line:
    row: Line = []
    for text, width in zip(texts, widths, strict=True):
        row += [(" | ", "gutter")] if row else []
        row += [(text, style), (" " * (width - cell_len(text)), "")]
    return row


def _list(acts: Sequence[tuple[int, str]], room: int) -> Iterable[Line]:
    for process, text in acts:
        for part in wrap(f"process {process}: {text}", room, hang=2):
            yield [(part, "")]
