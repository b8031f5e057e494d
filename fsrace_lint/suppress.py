"""`# noqa` comments: what they suppress, and which of them suppress nothing."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.findings import Finding, Severity
from fsrace_lint.spans import Place, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fsrace_lint.source import Source

CODE: Final = "FSR003"
NAME: Final = "unused-suppression"
_FAMILY: Final = "FSR"
_CODES: Final = r"(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+))?"
_NOQA: Final = re.compile(rf"# noqa{_CODES}", re.IGNORECASE)
_FILE_NOQA: Final = re.compile(rf"# flake8[:=]\s*noqa{_CODES}", re.IGNORECASE)
_CODE: Final = re.compile(r"[^,\s]+")


class Suppressed(msgspec.Struct, frozen=True):
    """What came of the findings of one file; the order within each is that of the findings.

    `unused` holds a finding FSR003 for each of our codes in a comment that
    suppresses nothing.
    """

    kept: tuple[Finding, ...]
    suppressed: tuple[Finding, ...] = ()
    unused: tuple[Finding, ...] = ()


class _Directive(msgspec.Struct, frozen=True):
    """One `noqa`: the lines it is for (None: the file), and its codes with their places (none: all)."""

    lines: range | None
    codes: tuple[tuple[str, Span], ...]

    def covers(self, finding: Finding) -> bool:
        """Tell whether a finding stands on these lines and has one of these codes."""
        if self.lines is not None and finding.place.span.line not in self.lines:
            return False
        return not self.codes or any(finding.code.startswith(text.upper()) for text, _ in self.codes)


def apply(source: Source, findings: Sequence[Finding], active: Callable[[str], bool]) -> Suppressed:
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

    Returns:
        The findings that stay and those that do not, and the unused suppressions.
    """
    lowered = source.data.lower()
    if b"noqa" not in lowered or not (findings or b"fsr" in lowered):
        return Suppressed(tuple(findings))
    directives = list(_directives(source.text))
    if any(directive.lines is None and not directive.codes for directive in directives):
        return Suppressed((), tuple(findings))
    kept: list[Finding] = []
    suppressed: list[Finding] = []
    for finding in findings:
        hit = any(directive.covers(finding) for directive in directives)
        (suppressed if hit else kept).append(finding)
    unused = _unused(source.path, directives, suppressed, active) if active(CODE) else ()
    return Suppressed(tuple(kept), tuple(suppressed), tuple(unused))


def _directives(text: str) -> Iterator[_Directive]:
    """Read the comments of a text; a text that cannot be taken apart has none."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    try:
        comments = list(_comments(text))
    except (tokenize.TokenError, SyntaxError):
        return
    for comment, row, column, reach in comments:
        whole = _FILE_NOQA.match(comment)
        if whole:
            alone = not lines[row - 1][:column].strip()
            yield _Directive(None if alone else range(0), _places(whole, row, column))
        for index, match in enumerate(_NOQA.finditer(comment)):
            yield _Directive(range(0) if index else reach, _places(match, row, column))


def _comments(text: str) -> Iterator[tuple[str, int, int, range]]:
    """Yield each comment, its line and column, and the lines that a `noqa` in it is for.

    As in flake8 these are the lines of the tokens since the last newline, of
    whatever kind: more than one only behind long strings and backslashes.
    """
    first: int | None = None
    last = 0
    pending: list[tuple[str, int, int]] = []
    for kind, string, (row, column), (end_row, _), _ in tokenize.generate_tokens(io.StringIO(text).readline):
        first = row if first is None else min(first, row)
        last = max(last, end_row)
        if kind == tokenize.COMMENT:
            pending.append((string, row, column))
        elif kind in (tokenize.NL, tokenize.NEWLINE):
            for comment in pending:
                yield *comment, range(first, last + 1)
            first, last, pending = None, 0, []


def _places(match: re.Match[str], row: int, column: int) -> tuple[tuple[str, Span], ...]:
    """Give the codes of a `noqa` with their places in the file."""
    if match["codes"] is None:
        return ()
    start = column + match.start("codes") + 1
    return tuple(
        (code[0], Span(row, start + code.start(), row, start + code.end()))
        for code in _CODE.finditer(match["codes"])
    )


def _unused(
    path: str, directives: Sequence[_Directive], suppressed: Sequence[Finding], active: Callable[[str], bool]
) -> Iterator[Finding]:
    for directive in directives:
        where = "in this file" if directive.lines is None else "here"
        for text, span in directive.codes:
            code = text.upper()
            if not code.startswith(_FAMILY) or not active(code):
                continue
            only = _Directive(directive.lines, ((code, span),))
            if not any(only.covers(finding) for finding in suppressed):
                yield Finding(
                    code=CODE,
                    name=NAME,
                    message=f"`noqa: {text}` suppresses nothing {where}",
                    place=Place(path, span),
                    function="<module>",
                    severity=Severity.WARNING,
                    evidence="evident",
                )
