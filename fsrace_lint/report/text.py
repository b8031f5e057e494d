"""The report a person reads in a terminal or a log.

Everything is laid out once, as lines of (text, style) pairs. Color only adds
escape sequences around the pairs, so both forms say the same in the same place.
Every pair goes through `visible` last, and before that wherever its width
counts; no text is ever taken for markup.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fsrace_lint.findings.finding import Applicability, Finding, Related, Severity, Silenced, Witness
from fsrace_lint.report import measured
from fsrace_lint.report.cells import cell_len, styled
from fsrace_lint.report.lines import Lines
from fsrace_lint.report.suppressions import counted, listed
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.files.spans import Place, Span
    from fsrace_lint.report import Options, Outcome, Problem

Line: TypeAlias = "list[tuple[str, str]]"

STYLES: Final[Mapping[str, str]] = {
    "path": "bold",
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "related": "blue",
    "gutter": "bright_black",
    "dim": "dim",
    "heading": "dim bold",
    "outcome": "bold",
    "safe": "green",
    "unsafe": "yellow",
    "sketch": "dim",
    "clean": "bold green",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
}
APPLICABILITIES: Final[Mapping[Applicability, str]] = {
    Applicability.SAFE: "safe",
    Applicability.UNSAFE: "unsafe: --unsafe-fixes",
    Applicability.SKETCH: "sketch: by hand",
}
NARROWEST: Final = 40
NARROWEST_COLUMN: Final = 16
NARROWEST_LABEL: Final = 24
MERGE_WITHIN: Final = 3
CUT: Final = "..."


class Mark(NamedTuple):
    """A stretch of source to underline, and what to say beside it."""

    span: Span
    char: str
    style: str
    label: str = ""


class Page(NamedTuple):
    """What the layout of one finding depends on besides the finding."""

    lines: Callable[[str], Sequence[str]]
    width: int
    gutter: int = 1

    @property
    def room(self) -> int:
        """The cells that are left for source text beside the line numbers."""
        return self.width - self.gutter - 3

    def shows(self, place: Place) -> bool:
        """Tell whether the line of `place` is known."""
        return place.span.line <= len(self.lines(place.path))


def render(outcome: Outcome, sources: Mapping[str, Source], options: Options) -> str:
    """Give the findings, then what was silent and the statistics if asked for, and one closing line."""
    page = Page(Lines(sources).of, max(options.width, NARROWEST))
    lines: list[Line] = []
    for finding in outcome.findings:
        lines += [*_finding(finding, page), []]
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
        lines.append(_summary(outcome))
    return paint(map(_finish, lines), color=options.color)


def timeline(witness: Witness, width: int) -> str:
    """Draw an interleaving, indented by four, with its outcome below it."""
    drawn = paint(map(_finish, _witness(witness, Page(lambda _: (), width))), color=False)
    return drawn.replace("\n  = ", "\n    ").rstrip("\n")


def paint(lines: Iterable[Line], *, color: bool) -> str:
    """Turn the lines into text, with escape sequences or without."""
    rows = ([_styled(*chunk) if color else chunk[0] for chunk in line] for line in lines)
    return "".join("".join(row) + "\n" for row in rows)


def _styled(text: str, style: str) -> str:
    if style and text:
        return styled(text, STYLES[style])
    return text


def _finish(line: Line) -> Line:
    """Make all of a line visible, and take the white space off its end."""
    kept = [(visible(text), style) for text, style in line]
    while kept:
        text, style = kept.pop()
        if text := text.rstrip():
            return [*kept, (text, style)]
    return kept


def _code(text: str) -> str:
    return visible(text.replace("\t", "    "))


def _cells(text: str) -> int:
    return cell_len(_code(text))


def _fit(text: str, room: int) -> int:
    """Count the leading characters of `text` that fit into `room` cells."""
    used = 0
    for index, char in enumerate(text):
        used += _cells(char)
        if used > room:
            return index
    return len(text)


def _wrap(text: str, width: int, hang: int = 0) -> list[str]:
    """Break visible text at spaces, and within words that are too long; rows after the first hang."""
    rows = [""]
    for word in text.split(" "):
        rest = word
        while True:
            room = width - (hang if len(rows) > 1 else 0)
            joined = f"{rows[-1]} {rest}" if rows[-1] else rest
            if cell_len(joined) <= room:
                rows[-1] = joined
                break
            if rows[-1]:
                rows.append("")
                continue
            size = max(1, _fit(rest, room))
            rows[-1], rest = rest[:size], rest[size:]
    return [rows[0], *(" " * hang + row for row in rows[1:])]


def _finding(finding: Finding, page: Page) -> list[Line]:
    near, far = _split(finding, page)
    shown = [finding.place, *(related.place for related in (*near, *far))]
    last = max((place.span.line + 1 for place in shown if page.shows(place)), default=1)
    page = Page(page.lines, page.width, gutter=len(str(last)))
    bar: Line = [(" " * page.gutter + " |", "gutter")]
    lines = [_header(finding)]
    if page.shows(finding.place):
        marks = [Mark(finding.place.span, "^", finding.severity.value)]
        marks += [Mark(item.place.span, "-", "related", item.message) for item in near]
        lines += _frame(page.lines(finding.place.path), marks, page, context=1)
    for item in far:
        lines += _far(item, page)
    if (finding.witness or finding.fix) and lines[-1] != bar:
        lines.append(bar)
    if finding.witness:
        lines += _witness(finding.witness, page)
    if finding.fix:
        style = finding.fix.applicability.value
        text = f"{finding.fix.description} ({APPLICABILITIES[finding.fix.applicability]})"
        lines += _note("fix", text, style, page)
    return lines


def _header(finding: Finding) -> Line:
    return [
        (finding.place.position, "path"),
        (": ", ""),
        (finding.code, finding.severity.value),
        (f" {finding.name}", "dim"),
        (f": {finding.message}", ""),
    ]


def _split(finding: Finding, page: Page) -> tuple[list[Related], list[Related]]:
    """Part the related places that share the frame of the finding from those that do not."""
    near: list[Related] = []
    far: list[Related] = []
    for related in finding.related:
        same = related.place.path == finding.place.path and page.shows(related.place)
        distance = abs(related.place.span.line - finding.place.span.line)
        (near if same and distance <= MERGE_WITHIN and page.shows(finding.place) else far).append(related)
    return near, far


def _far(related: Related, page: Page) -> list[Line]:
    arrow = " " * page.gutter + "--> "
    position = f"{related.place.position}: "
    lines: list[Line] = [[(arrow, "gutter"), (position, "path"), (related.message, "")]]
    if page.shows(related.place):
        mark = Mark(related.place.span, "-", "related")
        lines += _frame(page.lines(related.place.path), [mark], page, context=0)
    return lines


def _frame(source: Sequence[str], marks: Sequence[Mark], page: Page, context: int) -> list[Line]:
    first = max(1, min(mark.span.line for mark in marks) - context)
    last = min(len(source), max(mark.span.line for mark in marks) + context)
    bar: Line = [(" " * page.gutter + " |", "gutter")]
    lines: list[Line] = [bar]
    for number in range(first, last + 1):
        text = source[number - 1]
        here = [mark for mark in marks if mark.span.line == number]
        if number in (first, last) and not here and not text.strip():
            continue
        start, stop = _window(text, here, page.room)
        code = CUT * (start > 0) + _code(text[start:stop]) + CUT * (stop < len(text))
        lines.append([(f"{number:>{page.gutter}} | ", "gutter"), (code, "")])
        for mark in here:
            lines += _underline(mark, text, start, stop, page)
    return [*lines, bar]


def _window(text: str, marks: Sequence[Mark], room: int) -> tuple[int, int]:
    """Choose the characters of a line to show: all, or as many as fit around its marks."""
    if _cells(text) <= room:
        return 0, len(text)
    room -= len(CUT)
    before = text[: min((mark.span.column - 1 for mark in marks), default=0)]
    end = max((_end(mark, text) for mark in marks), default=0)
    start = len(before) - _fit(before[::-1], room // 4)
    if start == 0 or _fit(text, room) >= end:
        return 0, _fit(text, room)
    if start + _fit(text[start:], room) == len(text):
        return len(text) - _fit(text[::-1], room), len(text)
    return start, start + _fit(text[start:], room - len(CUT))


def _end(mark: Mark, text: str) -> int:
    """Give the character of `text`, the first line of the mark, at which its underline ends."""
    whole = len(text.rstrip())
    return whole if mark.span.end_line > mark.span.line else min(mark.span.end_column - 1, whole)


def _underline(mark: Mark, text: str, start: int, stop: int, page: Page) -> list[Line]:
    begin = max(start, min(mark.span.column - 1, stop))
    end = max(begin, min(_end(mark, text), stop))
    before = len(CUT) * (start > 0) + _cells(text[start:begin])
    size = max(1, len(CUT) * (start > 0) + _cells(text[start:end]) - before)
    goes_on = mark.span.end_line > mark.span.line or _end(mark, text) > stop
    drawn = mark.char * size + CUT * goes_on
    gutter = (" " * page.gutter + " | ", "gutter")
    lines: list[Line] = [[gutter, (" " * before, ""), (drawn, mark.style)]]
    label = visible(mark.label)
    beside = before + len(drawn) + 1
    if label and (cell_len(label) <= page.room - beside or page.room - beside >= NARROWEST_LABEL):
        first, *rest = _wrap(label, page.room - beside)
        lines[0].append((f" {first}", mark.style))
        lines += [[gutter, (" " * beside, ""), (row, mark.style)] for row in rest]
    elif label:
        below = min(before, max(0, page.room - NARROWEST_LABEL))
        rows = _wrap(label, page.room - below)
        lines += [[gutter, (" " * below, ""), (row, mark.style)] for row in rows]
    return lines


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
    return [*lines, *_note("outcome", witness.outcome, "outcome", page)]


def _widths(acts: Sequence[tuple[int, str]], processes: Sequence[int], room: int) -> list[int]:
    """Size the columns to what they hold, shrink the widest until they fit, or give nothing if none can."""
    widths = [
        max(len(f"process {process}"), *(cell_len(text) for who, text in acts if who == process))
        for process in processes
    ]
    room -= 3 * (len(widths) - 1)
    if sum(min(width, NARROWEST_COLUMN) for width in widths) > room:
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
        for part in _wrap(text, widths[column], hang=2):
            yield _row(["" if other != column else part for other in range(len(widths))], widths, "")


def _row(texts: Sequence[str], widths: Sequence[int], style: str) -> Line:
    row: Line = []
    for text, width in zip(texts, widths, strict=True):
        row += [(" | ", "gutter")] if row else []
        row += [(text, style), (" " * (width - cell_len(text)), "")]
    return row


def _list(acts: Sequence[tuple[int, str]], room: int) -> Iterable[Line]:
    for process, text in acts:
        for part in _wrap(f"process {process}: {text}", room, hang=2):
            yield [(part, "")]


def _note(name: str, text: str, style: str, page: Page) -> list[Line]:
    indent = page.gutter + 3
    first, *rest = _wrap(f"{name}: {visible(text)}", page.width - indent, hang=len(name) + 2)
    lines: list[Line] = [[(" " * (page.gutter + 1) + "= ", "gutter"), (first, style)]]
    return [*lines, *([(" " * indent + row, style)] for row in rest)]


def _silenced(silenced: Silenced) -> Line:
    cause, where = silenced.cause, ""
    if cause is not None:
        line = cause.span.line
        where = f"line {line}" if cause.path == silenced.place.path else f"{cause.path}:{line}"
    said = f": {silenced.call}: {silenced.message}{f' ({where})' if where else ''}"
    reason = f"silent: {silenced.reason}"
    return [(silenced.place.position, "path"), (": ", ""), (reason, "dim"), (said, "")]


def _tally(listed: Sequence[Silenced]) -> Line:
    tally = Counter(silenced.reason for silenced in listed).most_common()
    reasons = ", ".join(f"{number} {reason}" for reason, number in tally)
    number = count(len(listed), "call")
    return [(f"Kept silent: {number}", "outcome"), (f" ({reasons})." if tally else ".", "")]


def _problem(problem: Problem) -> Line:
    path = [(problem.path, "path"), (": ", "")] if problem.path else []
    return [*path, ("error", "error"), (f": {problem.message}", "")]


def _summary(outcome: Outcome) -> Line:
    failed = counted(outcome)
    failed += f"; {count(len(outcome.errors), 'failure')} in the run itself" if outcome.errors else ""
    findings = outcome.findings
    if not findings and outcome.errors:
        return [(f"Nothing was found{failed}.", "warning")]
    if not findings:
        files = outcome.statistics.get("files")
        where = "" if files is None else f" in {count(files, 'file')}"
        new = "new " if outcome.statistics.get("baseline") else ""
        return [(f"No {new}filesystem races found{where}{failed}.", "clean")]
    tally = Counter(finding.severity for finding in findings)
    words = {Severity.ERROR: "error", Severity.WARNING: "warning"}
    parts = [count(tally[severity], word) for severity, word in words.items() if tally[severity]]
    parts += [f"{tally[Severity.INFO]} info"] if tally[Severity.INFO] else []
    files = len({finding.place.path for finding in findings})
    found = f"Found {count(len(findings), 'problem')} ({', '.join(parts)}) in {count(files, 'file')}"
    return [(found, "outcome"), (f"{_fixable(findings)}{failed}.", "")]


def _fixable(findings: Iterable[Finding]) -> str:
    tally = Counter(finding.fix.applicability for finding in findings if finding.fix)
    safe, unsafe = tally[Applicability.SAFE], tally[Applicability.UNSAFE]
    if safe:
        more = f", {unsafe} more with --unsafe-fixes" if unsafe else ""
        return f"; {safe} fixable with fsrace-lint fix{more}"
    return f"; {unsafe} fixable with fsrace-lint fix --unsafe-fixes" if unsafe else ""
