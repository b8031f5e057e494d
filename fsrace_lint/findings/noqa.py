"""Read `noqa` comments as flake8 reads them, and edit their codes."""

from __future__ import annotations

import io
import re
import tokenize
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_CODES: Final = r"(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+))?"
_NOQA: Final = re.compile(rf"# noqa{_CODES}", re.IGNORECASE)
_FILE_NOQA: Final = re.compile(rf"# flake8[:=]\s*noqa{_CODES}", re.IGNORECASE)
_CODE: Final = re.compile(r"[^,\s]+")
# What may follow the codes that flake8 reads: rule names, each after a comma, and more codes.
_FIRST: Final = re.compile(r":\s?")
_WORD: Final = re.compile(r"[A-Z][A-Z0-9-]*(?=[,\s]|$)", re.IGNORECASE)
_IS_CODE: Final = re.compile(r"[A-Z]+[0-9]+", re.IGNORECASE)
_SEPARATOR: Final = re.compile(r"[,\s]*")
_TOOLS: Final = r"(?:type|noqa|pragma|pylint|pyright|mypy|nosec|fmt|isort|ruff|flake8|yapf|fsrace)\b"
# Text for another tool is not a reason, whether it follows `#` or precedes a colon.
_NEXT_COMMENT: Final = re.compile(rf"\s+#(?=\s)|\s*#(?=\s*{_TOOLS})|\s+(?={_TOOLS}\s*:)|\s*$", re.IGNORECASE)
_MARKS: Final = " \t-–—:,;#"  # noqa: RUF001  # dashes of any length
_PRAGMA: Final = re.compile(_TOOLS, re.IGNORECASE)
_STARTS: Final = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
_ENDS: Final = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
_LAYOUT: Final = frozenset((tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE))
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


class Item(msgspec.Struct, frozen=True):
    """A code or name in a `noqa` comment: its text, the code that it means, and its position."""

    text: str
    code: str
    start: int
    end: int


class Noqa(msgspec.Struct, frozen=True):
    """A `noqa` in a comment, which ends at `end` with its reason. Without items, it applies to all codes."""

    items: tuple[Item, ...]
    reason: str
    start: int
    end: int


class Chunk(msgspec.Struct, frozen=True):
    """Lines that share the comment at the end of the last line.

    As in flake8, these are the lines of the tokens since the last newline token. Only multi-line strings and
    backslashes make more than one line. `column` counts from 0.
    """

    first: int
    last: int
    comment: str = ""
    column: int = 0
    in_string: bool = False


def chunks(text: str) -> list[Chunk]:
    """Split a text into chunks.

    Args:
        text: Python source.

    Returns:
        The chunks in order. Empty if the text cannot be tokenized.
    """
    try:
        return list(_chunks(text))
    except (tokenize.TokenError, SyntaxError):
        return []


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return tokenize.generate_tokens(io.StringIO(plain).readline)


def _chunks(text: str) -> Iterator[Chunk]:
    first: int | None = None
    last = depth = 0
    comment, column = "", 0
    for kind, string, (row, start), (end_row, _), _ in _tokens(text):
        first = row if first is None else min(first, row)
        last = max(last, end_row)
        depth += (kind in _STARTS) - (kind in _ENDS)
        if kind == tokenize.COMMENT:
            comment, column = string, start
        elif kind in (tokenize.NL, tokenize.NEWLINE):
            yield Chunk(first, last, comment, column, depth > 0)
            first, last, comment, column = None, 0, "", 0


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their line endings. There is no empty line after the last ending."""
    return [line.rstrip("\r\n") for line in _LINE.findall(text)]


def same_code(before: str, after: str) -> bool:
    """Return whether two texts differ only in comments and empty lines."""

    def code(text: str) -> list[tuple[int, str]]:
        return [(token.type, token.string) for token in _tokens(text) if token.type not in _LAYOUT]

    try:
        return code(before) == code(after)
    except (tokenize.TokenError, SyntaxError):
        return False


def read(comment: str, names: Mapping[str, str]) -> list[Noqa]:
    """Return every `noqa` in a comment. Only the first applies to its line.

    Args:
        comment: The comment.
        names: The code of every rule, by name.
    """
    matches = list(_NOQA.finditer(comment))
    ends = [*(match.start() for match in matches[1:]), len(comment)]
    return [_noqa(comment, match, end, names) for match, end in zip(matches, ends, strict=False)]


def read_for_file(comment: str, names: Mapping[str, str]) -> Noqa | None:
    """Return the `flake8: noqa` of a comment, which applies to its file if it is on a line of its own."""
    match = _FILE_NOQA.match(comment)
    return None if match is None else _noqa(comment, match, len(comment), names)


def _noqa(comment: str, match: re.Match[str], end: int, names: Mapping[str, str]) -> Noqa:
    items = []
    at, named = match.end(), True
    if match["codes"] is not None:
        for code in _CODE.finditer(match["codes"]):
            start = match.start("codes") + code.start()
            items.append(Item(code[0], code[0].upper(), start, start + len(code[0])))
        named = "," in comment[items[-1].end : at]
    elif first := _FIRST.match(comment, at):
        at = first.end()
    else:
        named = False
    while word := _WORD.match(comment, at, end):
        code_of = names.get(word[0].lower()) if named else None
        if code_of is None and items and _IS_CODE.fullmatch(word[0]):
            code_of = word[0].upper()
        if code_of is None:
            break
        items.append(Item(word[0], code_of, *word.span()))
        start = word.end()
        at = max(
            start,
            *(found.end() for found in _SEPARATOR.finditer(comment, start, end) if found.start() == start),
        )
        named = "," in comment[start:at]
    said = items[-1].end if items else match.end()
    boundary = _NEXT_COMMENT.search(comment, said, end)
    stop = boundary.start() if boundary else end
    return Noqa(tuple(items), _reason(comment, said, stop, end), match.start(), stop)


def _reason(comment: str, said: int, stop: int, end: int) -> str:
    """Return the words after the codes, or those of a following comment that is not for a tool."""
    words = comment[said:stop].strip(_MARKS)
    if words:
        return words
    following = comment[stop:end].strip().strip(_MARKS)
    return "" if _PRAGMA.match(following) else following


def without(comment: str, places: Collection[int], names: Mapping[str, str]) -> str:
    """Remove codes from a comment. A `noqa` without remaining codes is removed with its reason.

    Args:
        comment: The comment.
        places: The start positions of the codes in the comment.
        names: The code of every rule, by name.

    Returns:
        The rest of the comment. Only white space if nothing else remains.
    """
    whole = read_for_file(comment, names)
    for found in reversed([*([] if whole is None else [whole]), *read(comment, names)]):
        kept = [item for item in found.items if item.start not in places]
        if len(kept) == len(found.items):
            continue
        before, after = comment[: found.start], _commented(comment[found.end :])
        if kept:
            start, end = found.items[0].start, found.items[-1].end
            comment = comment[:start] + _joined(comment, found.items, kept) + comment[end:]
        elif not after.strip():
            comment = before.rstrip() + after
        else:
            comment = f"{before.rstrip()}  {after.lstrip()}" if before.strip() else after.lstrip()
    return comment


def _commented(rest: str) -> str:
    """Return the text after a `noqa` as a comment of its own."""
    bare = rest.lstrip()
    return rest if not bare or bare.startswith("#") else f"{rest[: len(rest) - len(bare)]}# {bare}"


def _joined(comment: str, items: Sequence[Item], kept: Sequence[Item]) -> str:
    """Join the remaining items, each with its original separator before it."""
    text = kept[0].text
    for item in kept[1:]:
        before = items[items.index(item) - 1]
        text += comment[before.end : item.start] + item.text
    return text


def with_codes(comment: str, codes: Sequence[str], reason: str, names: Mapping[str, str]) -> str:
    """Add codes to a comment: to its first `noqa`, or as a new `noqa` at the end.

    Args:
        comment: The comment. Empty if there is none.
        codes: The codes.
        reason: The reason. May be empty.
        names: The code of every rule, by name.
    """
    found = read(comment, names)
    if not found or not found[0].items:
        said = f"# noqa: {', '.join(codes)}{f' -- {reason}' if reason else ''}"
        bare = comment.rstrip()
        return f"{bare}  {said}{comment[len(bare) :]}" if bare else said + comment
    first = found[0]
    last = first.items[-1]
    separator = ", "
    if len(first.items) > 1:
        separator = comment[first.items[-2].end : last.start]
    added = "".join(separator + code for code in codes)
    more = f"{'; ' if comment[last.end : first.end].strip() else ' -- '}{reason}" if reason else ""
    return comment[: last.end] + added + comment[last.end : first.end] + more + comment[first.end :]


def changed(text: str, comments: Mapping[int, tuple[int, str]]) -> str:
    """Replace comments in a text.

    Args:
        text: Python source.
        comments: The column (from 0) and the new comment for each line. A comment of white space removes the
            old one, and the line if it has nothing else. Column -1 adds a comment to a line that has none.

    Returns:
        The changed text. All other lines are unchanged.
    """
    lines = _LINE.findall(text)
    for row, (column, comment) in comments.items():
        line = lines[row - 1]
        body = line.rstrip("\r\n")
        newline = line[len(body) :]
        code = body.rstrip(" \t\f") if column < 0 else body[:column]
        if column < 0:
            lines[row - 1] = f"{code}  {comment}{body[len(code) :]}{newline}"
        elif comment.strip():
            lines[row - 1] = code + comment + newline
        else:
            lines[row - 1] = code.rstrip(" \t") + comment + newline if code.strip() else ""
    return "".join(lines)
