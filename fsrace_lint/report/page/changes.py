"""The fix of a finding: its description, its diff, or the reason why it is refused."""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.files.spans import Span
from fsrace_lint.findings.finding import Applicability
from fsrace_lint.report import Edit
from fsrace_lint.report.edits import applied, lines_of, same
from fsrace_lint.report.page.frames import code
from fsrace_lint.report.page.markup import Markup, join, markup, prose, tag
from fsrace_lint.report.provenance import fix_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.finding import Finding, Fix
    from fsrace_lint.report import Preview

_MEANING: Final[Mapping[Applicability, str]] = {
    Applicability.SAFE: "To apply this fix, run `fsrace-lint fix`.",
    Applicability.UNSAFE: "To apply this fix, run `fsrace-lint fix --tier {tier}`, and review the change.",
    Applicability.SKETCH: "Apply this fix manually.",
}
_CONTEXT: Final = 2
_END: Final = Markup("\n")


def pill(fix: Fix, preview: Preview | None) -> Markup:
    """Return a short label for the applicability of a fix."""
    if preview is not None and preview.refusal:
        return tag("span", "fix refused", class_="pill refused")
    return tag("span", fix_kind(fix), class_=f"pill {fix.applicability.value}")


def change(finding: Finding, fix: Fix, preview: Preview | None, source: Source | None) -> Markup:
    """Return the fix of a finding, with a diff if the source is known."""
    told = tag("span", prose(fix.description), class_="what")
    head = tag("p", pill(fix, preview), " ", told, class_="fixhead")
    if preview is not None and preview.refusal:
        body = tag("p", prose(f"This fix is not applied: {preview.refusal}."), class_="aside")
    else:
        tier = "" if fix.tier is None else fix.tier.value
        body = tag("p", prose(_MEANING[fix.applicability].format(tier=tier)), class_="aside")
    shown = _diff(preview, source, finding.place.path) if preview and preview.edits and source else ""
    return tag("section", tag("h5", "Fix"), head, shown, body, class_="fix")


def _diff(preview: Preview, source: Source, path: str) -> Markup:
    old = _lines(source)
    parts: list[Markup] = []
    moved = 0
    for group in _groups(preview.edits):
        first = max(0, group[0].span.line - 1 - _CONTEXT)
        before = old[first : group[-1].span.end_line + _CONTEXT]
        after = lines_of(applied("".join(before), [_lifted(edit, first) for edit in group]))
        if parts:
            parts.append(tag("span", _gutter("", ""), "\u22ef", _END, class_="l gap"))
        for row in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            parts += _rows(row, _Side(before, first), _Side(after, first + moved))
        moved += len(after) - len(before)
    label = f"Changes of the fix in {path}"
    return tag("pre", tag("code", *parts), class_="diff", tabindex="0", role="group", aria_label=label)


@lru_cache(maxsize=1)
def _lines(source: Source) -> list[str]:
    return lines_of(source.text)


class _Side(NamedTuple):
    """Some lines of the old or new text, and the number of lines above them."""

    lines: Sequence[str]
    above: int


def _groups(edits: Iterable[Edit]) -> list[list[Edit]]:
    """Group edits whose context lines meet."""
    groups: list[list[Edit]] = []
    for edit in edits:
        if groups and edit.span.line - groups[-1][-1].span.end_line <= 2 * _CONTEXT:
            groups[-1].append(edit)
        else:
            groups.append([edit])
    return groups


def _lifted(edit: Edit, lines: int) -> Edit:
    span = edit.span
    return Edit(Span(span.line - lines, span.column, span.end_line - lines, span.end_column), edit.text)


def _rows(row: tuple[str, int, int, int, int], old: _Side, new: _Side) -> Iterator[Markup]:
    kind, begin, end, new_begin, new_end = row
    if kind == "equal":
        for number in range(begin, end):
            other = new.above + new_begin + number - begin + 1
            yield _row(" ", str(old.above + number + 1), str(other), markup(code(_bare(old.lines[number]))))
        return
    pairs = end - begin == new_end - new_begin
    for number in range(begin, end):
        beside = new.lines[new_begin + number - begin] if pairs else None
        yield _row("-", str(old.above + number + 1), "", _changed("del", old.lines[number], beside))
    for number in range(new_begin, new_end):
        beside = old.lines[begin + number - new_begin] if pairs else None
        yield _row("+", "", str(new.above + number + 1), _changed("ins", new.lines[number], beside))


def _row(sign: str, old: str, new: str, text: Markup) -> Markup:
    kind = {" ": "l", "-": "l minus", "+": "l plus"}[sign]
    return tag("span", _gutter(old, new), f"{sign} ", text, _END, class_=kind)


def _gutter(old: str, new: str) -> Markup:
    return join([tag("span", old, class_="n"), tag("span", new, class_="n")])


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _changed(name: str, line: str, other: str | None) -> Markup:
    """Mark the difference from the corresponding line, if there is one."""
    text = _bare(line)
    if other is None:
        return markup(code(text))
    beside = _bare(other)
    head = same(text, beside)
    tail = same(text[head:][::-1], beside[head:][::-1])
    middle = text[head : len(text) - tail]
    marked = tag(name, code(middle)) if middle else ""
    return join([code(text[:head]), marked, code(text[len(text) - tail :])])
