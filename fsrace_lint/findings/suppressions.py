"""`# noqa` comments: what they suppress, and which of them suppress nothing."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from fsrace_lint.files.source import split_lines
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Applicability, Finding, Fix, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from fsrace_lint.files.source import Source
    from fsrace_lint.findings.noqa import Item, Noqa

CODE: Final = "FSR003"
NAME: Final = "unused-suppression"
_FAMILY: Final = "FSR"
RECIPE: Final = "drop-noqa"
"""The recipe of the fix that takes a code out of a comment."""


class Suppressed(msgspec.Struct, frozen=True):
    """What came of the findings of one file; the order within each is that of the findings.

    `unused` holds a finding FSR003 for each of our codes in a comment that
    suppresses nothing. `reasons` has what the comments say, for each of the suppressed.
    """

    kept: tuple[Finding, ...]
    suppressed: tuple[Finding, ...] = ()
    unused: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()


class _Directive(NamedTuple):
    """One `noqa`: the lines it is for (None: the file), where its comment stands, and what it says."""

    lines: range | None
    row: int
    column: int
    comment: str
    said: Noqa

    def covers(self, finding: Finding, items: Sequence[Item]) -> bool:
        """Tell whether a finding stands on these lines and has one of these codes; none mean all."""
        if self.lines is not None and finding.place.span.line not in self.lines:
            return False
        return not items or any(finding.code.startswith(item.code) for item in items)

    def span(self, item: Item) -> Span:
        """Give the place of a code in the file."""
        return Span(self.row, self.column + item.start + 1, self.row, self.column + item.end + 1)


def may_suppress(data: bytes) -> bool:
    """Tell whether a comment in a file with these bytes may suppress something."""
    return b"noqa" in data.lower()


def apply(
    source: Source,
    findings: Sequence[Finding],
    active: Callable[[str], bool],
    names: Mapping[str, str] = MappingProxyType({}),
) -> Suppressed:
    """Take out the findings that a comment suppresses.

    The comments mean what they mean to flake8: `# noqa` stands on the reported
    line, or behind the string or the backslashes that the line belongs to;
    `# flake8: noqa` stands on a line of its own. Text in strings never counts.

    Args:
        source: The file.
        findings: Its findings.
        active: Tells whether a code is on in this run. It is asked for what a
            comment names, so also for prefixes like `FSR1` and for codes that no
            rule has, and for FSR003 itself.
        names: The code of every rule by its name, which comments may say instead.

    Returns:
        The findings that stay and those that do not, and the unused suppressions.
    """
    lowered = source.data.lower()
    if b"noqa" not in lowered or not (findings or _names_ours(lowered, names)):
        return Suppressed(tuple(findings))
    text = source.text
    codes = {finding.code for finding in findings}
    if not any(is_for_us(line, names, codes) for line in split_lines(text) if "noqa" in line.lower()):
        return Suppressed(tuple(findings))
    directives = list(_directives(text, names))
    if any(directive.lines is None and not directive.said.items for directive in directives):
        return Suppressed((), tuple(findings), (), ("",) * len(findings))
    kept: list[Finding] = []
    suppressed: list[Finding] = []
    reasons: list[str] = []
    for finding in findings:
        hits = [found for found in directives if found.covers(finding, found.said.items)]
        if hits:
            suppressed.append(finding)
            reasons.append(hits[0].said.reason)
        else:
            kept.append(finding)
    unused = _unused(source.path, directives, suppressed, active) if active(CODE) else ()
    return Suppressed(tuple(kept), tuple(suppressed), tuple(unused), tuple(reasons))


def _names_ours(data: bytes, names: Mapping[str, str]) -> bool:
    """Tell whether a file may name one of our rules."""
    return _FAMILY.lower().encode() in data or any(name.encode() in data for name in names)


def is_for_us(line: str, names: Mapping[str, str], codes: Collection[str]) -> bool:
    """Tell whether a line may hold a comment about findings of these codes, or one that names a rule of ours.

    To find the comments of a file takes long; so whatever follows a number sign is read as if it were one.
    """
    from fsrace_lint.findings import noqa  # noqa: PLC0415  # most runs meet no such comment

    wholes = (noqa.read_for_file(line[start:], names) for start, sign in enumerate(line) if sign == "#")
    found = (*noqa.read(line, names), *(whole for whole in wholes if whole is not None))
    for said in found:
        named = [item.code for item in said.items]
        if not named or any(code.startswith(_FAMILY) for code in named):
            return True
        if any(code.startswith(tuple(named)) for code in codes):
            return True
    return False


def _directives(text: str, names: Mapping[str, str]) -> Iterator[_Directive]:
    """Read the comments of a text; a text that cannot be taken apart has none."""
    from fsrace_lint.findings import noqa  # noqa: PLC0415  # most runs meet no such comment

    lines = noqa.lines_of(text)
    for chunk in noqa.chunks(text):
        row, column, comment = chunk.last, chunk.column, chunk.comment
        whole = noqa.read_for_file(comment, names)
        if whole:
            alone = not lines[row - 1][:column].strip()
            yield _Directive(None if alone else range(0), row, column, comment, whole)
        reach = range(chunk.first, chunk.last + 1)
        for index, said in enumerate(noqa.read(comment, names)):
            yield _Directive(range(0) if index else reach, row, column, comment, said)


def _unused(
    path: str, directives: Sequence[_Directive], suppressed: Sequence[Finding], active: Callable[[str], bool]
) -> Iterator[Finding]:
    for directive in directives:
        where = "in this file" if directive.lines is None else "here"
        row, column = directive.row, directive.column + 1
        comment = Span(row, column, row, column + len(directive.comment))
        for item in directive.said.items:
            if not item.code.startswith(_FAMILY) or not active(item.code):
                continue
            if not any(directive.covers(finding, (item,)) for finding in suppressed):
                yield Finding(
                    code=CODE,
                    name=NAME,
                    message=f"`noqa: {item.text}` suppresses nothing {where}",
                    place=Place(path, directive.span(item)),
                    function="<module>",
                    severity=Severity.WARNING,
                    evidence="evident",
                    fix=Fix(RECIPE, comment, Applicability.SAFE, f"take {item.text} out of the comment"),
                )
