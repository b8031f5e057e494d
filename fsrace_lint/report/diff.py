"""Unified diffs that `git apply` and `patch -p1` accept."""

from __future__ import annotations

import codecs
import difflib
import io
import os

from fsrace_lint.report.words import visible


def unified(path: str, before: bytes, after: bytes, encoding: str) -> str:
    """Return the diff from `before` to `after`; it is empty if they are equal.

    Like git, the diff splits lines only at a line feed, so a carriage return stays in its line. Encoded in
    `encoding`, the diff applies byte for byte.
    """
    old, new = _lines(before, encoding), _lines(after, encoding)
    lines = difflib.unified_diff(old, new, _header(f"a/{path}", encoding), _header(f"b/{path}", encoding))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def for_the_eyes(diff: str, *, color: bool) -> str:
    """Return the diff for display, with escaped control characters; it cannot be applied."""
    from fsrace_lint.report.layout import paint  # noqa: PLC0415 - only here does a diff need rich

    def shown(line: str) -> str:
        return "\t".join(map(visible, line.removesuffix("\r").split("\t")))

    lines = [[(shown(line), _style(line))] for line in diff.split("\n")]
    return paint(lines, color=color).removesuffix("\n")


def _style(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return "path"
    return {"@": "hunk", "+": "added", "-": "removed", "\\": "dim"}.get(line[:1], "")


def _lines(data: bytes, encoding: str) -> list[str]:
    # `utf-8-sig` would hide the byte order mark of the line on the disk.
    codec = "utf-8" if codecs.lookup(encoding).name == "utf-8-sig" else encoding
    try:
        text = data.decode(codec)
    except UnicodeError:  # not earlier: some codecs do not support "replace"
        text = data.decode(codec, "replace")
    return list(io.StringIO(text, newline="\n"))


def _header(name: str, encoding: str) -> str:
    """Return a file name as git writes it: quoted if necessary, and with a tab after a name with a space."""
    # Names are UTF-8 on the disk, so a diff in another encoding cannot contain non-ASCII names.
    utf8 = codecs.lookup(encoding).name.startswith("utf-8")
    if name.isprintable() and (utf8 or name.isascii()) and not set(name) & {'"', "\\"}:
        return f"{name}\t" if " " in name else name
    return '"' + "".join(_quoted(byte) for byte in os.fsencode(name)) + '"'


def _quoted(byte: int) -> str:
    char = chr(byte)
    if char in {'"', "\\"}:
        return f"\\{char}"
    return char if " " <= char <= "~" else f"\\{byte:03o}"
