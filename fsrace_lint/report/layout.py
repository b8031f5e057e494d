"""Lines of a report for people, laid out as (text, style) pairs.

The layout does not depend on color, which only adds escape sequences around the pairs. Every pair passes
through `visible()` at the end, and earlier if its width matters. No text is interpreted as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fsrace_lint.report.cells import cell_len, styled
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fsrace_lint.files.spans import Place, Span
    from fsrace_lint.findings.finding import Finding

Line: TypeAlias = "list[tuple[str, str]]"

STYLES: Final[Mapping[str, str]] = {
    "path": "bold",
    "error": "bold red",
    "warning": "bold yellow",
    "note": "bold cyan",
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
NARROWEST: Final = 40
NARROWEST_LABEL: Final = 24
CUT: Final = "..."


class Mark(NamedTuple):
    """A span of source code to underline, with a label."""

    span: Span
    char: str
    style: str
    label: str = ""


class Page(NamedTuple):
    """The parameters of the layout of one finding."""

    lines: Callable[[str], Sequence[str]]
    width: int
    gutter: int = 1

    @property
    def room(self) -> int:
        """The number of cells for source code next to the line numbers."""
        return self.width - self.gutter - 3

    def shows(self, place: Place) -> bool:
        """Return whether the line of `place` is known."""
        return place.span.line <= len(self.lines(place.path))


def paint(lines: Iterable[Line], *, color: bool) -> str:
    """Return the lines as text, with or without escape sequences."""
    rows = ([_styled(*chunk) if color else chunk[0] for chunk in line] for line in lines)
    return "".join("".join(row) + "\n" for row in rows)


def _styled(text: str, style: str) -> str:
    if style and text:
        return styled(text, STYLES[style])
    return text


def finish(line: Line) -> Line:
    """Return a line with visible text and without trailing white space."""
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


def wrap(text: str, width: int, hang: int = 0) -> list[str]:
    """Break visible text at spaces, and within long words; indent all rows after the first by `hang`."""
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


def bar(page: Page) -> Line:
    """Return an empty line of the frame."""
    return [(f"{' ' * page.gutter} |", "gutter")]


def with_gutter(page: Page, places: Iterable[Place], context: int = 0) -> Page:
    """Return the page with enough space for the line numbers of the visible places."""
    last = max((place.span.line + context for place in places if page.shows(place)), default=1)
    return page._replace(gutter=len(str(last)))


def marked(number: int, path: str, marks: Sequence[Mark], page: Page, *, short: bool = False) -> list[Line]:
    """Lay out one line of source code with its marks.

    Args:
        number: The line.
        path: The file.
        marks: The marks on this line.
        page: The layout.
        short: Whether to limit a label to one row and truncate it.

    Returns:
        The line, followed by one underline for each mark, with its label.
    """
    text = page.lines(path)[number - 1]
    start, stop = _window(text, marks, page.room)
    shown = CUT * (start > 0) + _code(text[start:stop]) + CUT * (stop < len(text))
    lines: list[Line] = [[(f"{number:>{page.gutter}} | ", "gutter"), (shown, "")]]
    for mark in marks:
        lines += _underline(mark, text, start, stop, page, short=short)
    return lines


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
    """Return the offset in `text`, the first line of the mark, where its underline ends."""
    whole = len(text.rstrip())
    return whole if mark.span.end_line > mark.span.line else min(mark.span.end_column - 1, whole)


def _underline(mark: Mark, text: str, start: int, stop: int, page: Page, *, short: bool) -> list[Line]:
    begin = max(start, min(mark.span.column - 1, stop))
    end = max(begin, min(_end(mark, text), stop))
    before = len(CUT) * (start > 0) + _cells(text[start:begin])
    size = max(1, len(CUT) * (start > 0) + _cells(text[start:end]) - before)
    goes_on = mark.span.end_line > mark.span.line or _end(mark, text) > stop
    drawn = mark.char * size + CUT * goes_on
    gutter = (" " * page.gutter + " | ", "gutter")
    lines: list[Line] = [[gutter, (" " * before, ""), (drawn, mark.style)]]
    label = visible(mark.label)
    after = before + len(drawn) + 1
    fits = cell_len(label) <= page.room - after
    if label and (fits or (page.room - after >= NARROWEST_LABEL and not short)):
        first, *rest = wrap(label, page.room - after)
        lines[0].append((f" {first}", mark.style))
        lines += [[gutter, (" " * after, ""), (row, mark.style)] for row in rest]
    elif label and short:
        cut = label if cell_len(label) <= page.room else label[: _fit(label, page.room - len(CUT))] + CUT
        below = min(before, page.room - cell_len(cut))
        lines.append([gutter, (" " * below, ""), (cut, mark.style)])
    elif label:
        below = min(before, max(0, page.room - NARROWEST_LABEL))
        rows = wrap(label, page.room - below)
        lines += [[gutter, (" " * below, ""), (row, mark.style)] for row in rows]
    return lines


def header(finding: Finding, page: Page) -> list[Line]:
    """Return the first lines of a finding: its message and its location."""
    severity = finding.severity.value
    return [
        [(f"{severity}[{finding.code}]", severity), (f": {finding.message}", "outcome")],
        arrow("-->", finding.place, page),
    ]


def arrow(sign: str, place: Place, page: Page) -> Line:
    """Return the line with the location of the frame below it."""
    return [(f"{' ' * page.gutter}{sign} ", "gutter"), (place.position, "path")]


def note(name: str, text: str, style: str, page: Page, *, short: bool = False) -> list[Line]:
    """Return a note below the frame, in one long line if `short`, otherwise wrapped to the page width."""
    indent = page.gutter + 3
    text = f"{name}: {visible(text)}"
    first, *rest = [text] if short else wrap(text, page.width - indent, hang=len(name) + 2)
    lines: list[Line] = [[(" " * (page.gutter + 1) + "= ", "gutter"), (first, style)]]
    return [*lines, *([(" " * indent + row, style)] for row in rest)]
