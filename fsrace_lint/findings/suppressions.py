"""Apply `# noqa` comments, and find those that suppress nothing."""

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
"""The recipe of the fix that removes a code from a comment."""


class Suppressed(msgspec.Struct, frozen=True):
    """The findings of one file after applying comments, each group in the original order.

    Attributes:
        kept: The findings that no comment suppresses.
        suppressed: The findings that a comment suppresses.
        unused: A finding FSR003 for each of our codes in a comment that suppresses nothing.
        reasons: The reason in the comment, for each suppressed finding.
    """

    kept: tuple[Finding, ...]
    suppressed: tuple[Finding, ...] = ()
    unused: tuple[Finding, ...] = ()
    reasons: tuple[str, ...] = ()


class _Directive(NamedTuple):
    """A `noqa`: the lines it applies to (None for the file), the position of its comment, and its content."""

    lines: range | None
    row: int
    column: int
    comment: str
    said: Noqa

    def covers(self, finding: Finding, items: Sequence[Item]) -> bool:
        """Return whether a finding is on these lines and has one of these codes. No codes mean all."""
        if self.lines is not None and finding.place.span.line not in self.lines:
            return False
        return not items or any(finding.code.startswith(item.code) for item in items)

    def span(self, item: Item) -> Span:
        """Return the span of a code in the file."""
        return Span(self.row, self.column + item.start + 1, self.row, self.column + item.end + 1)


def may_suppress(data: bytes) -> bool:
    """Return whether a comment in a file with these bytes may suppress a finding."""
    return b"noqa" in data.lower()


def apply(
    source: Source,
    findings: Sequence[Finding],
    active: Callable[[str], bool],
    names: Mapping[str, str] = MappingProxyType({}),
) -> Suppressed:
    """Separate the findings that a comment suppresses.

    Comments mean the same as for flake8. `# noqa` is on the reported line, or after the multi-line string or
    backslashes that contain the line. `# flake8: noqa` is on a line of its own. Text in strings does not
    count.

    Args:
        source: The file.
        findings: The findings of the file.
        active: Returns whether a code is enabled in this run. It is called with the codes in comments,
            including prefixes like `FSR1` and unknown codes, and with FSR003.
        names: The code of every rule, by name. Comments may use names.

    Returns:
        The findings to keep, the suppressed findings, and the unused suppressions.
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
    """Return whether a file may name one of our rules."""
    return _FAMILY.lower().encode() in data or any(name.encode() in data for name in names)


def is_for_us(line: str, names: Mapping[str, str], codes: Collection[str]) -> bool:
    """Return whether a line may contain a comment for findings of these codes, or for our rules.

    Tokenizing a file is slow, so any text after a number sign is treated as a comment.
    """
    from fsrace_lint.findings import noqa  # noqa: PLC0415  # most runs find no such comment

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
    """Yield the directives in the comments of a text. A text that cannot be tokenized has none."""
    from fsrace_lint.findings import noqa  # noqa: PLC0415  # most runs find no such comment

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
        where = "in this file" if directive.lines is None else "on this line"
        row, column = directive.row, directive.column + 1
        comment = Span(row, column, row, column + len(directive.comment))
        for item in directive.said.items:
            if not item.code.startswith(_FAMILY) or not active(item.code):
                continue
            if not any(directive.covers(finding, (item,)) for finding in suppressed):
                yield Finding(
                    code=CODE,
                    name=NAME,
                    message=f"unused `noqa: {item.text}`: it suppresses no finding {where}",
                    place=Place(path, directive.span(item)),
                    function="<module>",
                    severity=Severity.WARNING,
                    evidence="evident",
                    fix=Fix(RECIPE, comment, Applicability.SAFE, f"remove `{item.text}` from the comment"),
                )
