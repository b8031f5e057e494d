"""The code of a finding: its line and the related lines, each with context."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.report.page.markup import Markup, join, markup, plain, prose, tag
from fsrace_lint.report.words import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.files.spans import Place, Span
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.report.lines import Lines

_CONTEXT: Final = 2
_LONGEST: Final = 12
"""The maximum number of lines of one place."""
_WIDEST: Final = 400
"""The maximum number of characters of one line."""
_TAB: Final = "    "
_CUT: Final = "\u2026"
_END: Final = Markup("\n")


class _Mark(NamedTuple):
    """A place to mark; the reported place has no message."""

    place: Place
    message: str = ""

    @property
    def last(self) -> int:
        span = self.place.span
        return max(span.line, min(span.end_line, span.line + _LONGEST - 1))


class _Hunk(NamedTuple):
    """Lines of one file that are shown together."""

    path: str
    first: int
    last: int
    marks: tuple[_Mark, ...]


def frames(finding: Finding, lines: Lines) -> Markup:
    """Return the place of a finding and its related places; unknown ones are only listed."""
    marks = [
        _Mark(finding.place),
        *(_Mark(item.place, item.message or "related") for item in finding.related),
    ]
    known = [mark for mark in marks if 0 < mark.place.span.line <= len(lines.of(mark.place.path))]
    shown = [_frame(hunk, finding, lines.of(hunk.path)) for hunk in _hunks(known)]
    unknown = [
        tag("li", f"{mark.place.position}: ", prose(mark.message))
        for mark in marks
        if mark not in known and mark.message
    ]
    return join([*shown, tag("ul", *unknown, class_="elsewhere") if unknown else ""])


def code(text: str) -> str:
    """Return source text for display, with tabs as spaces and hidden characters escaped."""
    return plain(text.replace("\t", _TAB))


def _hunks(marks: Sequence[_Mark]) -> list[_Hunk]:
    """Group the places into ranges of lines, ordered by the first place of each."""
    found: list[_Hunk] = []
    for mark in marks:
        around = _CONTEXT if not mark.message else 1
        below = around if mark.last == mark.place.span.end_line else 0
        new = _Hunk(mark.place.path, mark.place.span.line - around, mark.last + below, (mark,))
        apart = []
        for index, old in enumerate(found):
            if old.path == new.path and new.first <= old.last + 2 and old.first <= new.last + 2:
                marks_of = (*old.marks, *new.marks)
                new = _Hunk(new.path, min(old.first, new.first), max(old.last, new.last), marks_of)
                apart.append(index)
        if apart:
            found[apart[0]] = new
            found = [hunk for index, hunk in enumerate(found) if index not in apart[1:]]
        else:
            found.append(new)
    return found


def _frame(hunk: _Hunk, finding: Finding, source: Sequence[str]) -> Markup:
    rows: list[str] = []
    first, last = max(1, hunk.first), min(len(source), hunk.last)
    while first < last and not source[last - 1].strip() and not _on(hunk, last):
        last -= 1
    for number in range(first, last + 1):
        rows += _rows(number, source[number - 1], _on(hunk, number))
    where = hunk.path if hunk.path != finding.place.path else ""
    title = tag("figcaption", f"{where}:{hunk.marks[0].place.span.line}") if where else ""
    label = f"Code of {hunk.path} from line {first}"
    block = tag("pre", tag("code", *rows), tabindex="0", role="group", aria_label=label)
    return tag("figure", title, block, class_="frame")


def _on(hunk: _Hunk, number: int) -> list[_Mark]:
    return [mark for mark in hunk.marks if mark.place.span.line <= number <= mark.last]


def _rows(number: int, text: str, marks: Sequence[_Mark]) -> Iterator[Markup]:
    """Yield a line with its marks, and below it the messages of the places that begin there."""
    start, stop = _window(text, number, marks)
    cuts = _cuts(text, number, marks, start, stop)
    parts = [_segment(text, begin, end, number, marks) for begin, end in pairwise(cuts)]
    shown = join([_CUT * (start > 0), *parts, _CUT * (stop < len(text))])
    here = any(not mark.message for mark in marks)
    yield tag("span", tag("span", str(number), class_="n"), shown, _END, class_="l here" if here else "l")
    for mark in marks:
        span = mark.place.span
        if mark.message and span.line == number:
            indent = " " * (len(code(text[start : span.column - 1])) + (start > 0))
            note = tag("i", f"{indent}\u2191 ", prose(mark.message))
            yield tag("span", tag("span", class_="n"), note, _END, class_="l note")
        if mark.last == number < span.end_line:
            more = tag("i", f"{_CUT} {count(span.end_line - number, 'more line')}")
            yield tag("span", tag("span", class_="n"), more, _END, class_="l note")


def _window(text: str, number: int, marks: Iterable[_Mark]) -> tuple[int, int]:
    """Choose the characters of a very long line to show."""
    if len(text) <= _WIDEST:
        return 0, len(text)
    begins = [_reach(mark.place.span, number, text)[0] for mark in marks]
    start = max(0, min(begins, default=0) - _WIDEST // 4)
    return start, min(len(text), start + _WIDEST)


def _reach(span: Span, number: int, text: str) -> tuple[int, int]:
    """Return the characters of a line that a span covers, without surrounding white space."""
    begin = span.column - 1 if number == span.line else len(text) - len(text.lstrip())
    end = span.end_column - 1 if number == span.end_line else len(text.rstrip())
    return begin, max(begin, end)


def _cuts(text: str, number: int, marks: Iterable[_Mark], start: int, stop: int) -> list[int]:
    ends = {end for mark in marks for end in _reach(mark.place.span, number, text)}
    return sorted({start, stop, *(end for end in ends if start < end < stop)})


def _segment(text: str, begin: int, end: int, number: int, marks: Iterable[_Mark]) -> Markup:
    """Return a segment of a line between two cuts, with the marks of all places that cover it."""
    shown = markup(code(text[begin:end]))
    reaches = [(mark, _reach(mark.place.span, number, text)) for mark in marks]
    covering = [mark for mark, (first, last) in reaches if first <= begin and end <= last]
    if any(not mark.message for mark in covering):
        shown = tag("mark", shown)
    return tag("span", shown, class_="also") if any(mark.message for mark in covering) else shown
