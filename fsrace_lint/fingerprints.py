"""What a finding is known by in the next run, when its lines have moved and its code is laid out anew."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from fsrace_lint.findings import Finding

_LITERAL: Final = re.compile(
    r"""
      (?:\b[bfrtu]{1,2})?(?P<quote>\"{3}|'{3}|["'])(?P<string>(?:\\.|(?!(?P=quote)).)*)(?P=quote)
    | \#[^\r\n]*
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_LAYOUT: Final = re.compile(r"""[\s,()\\'"]+""")


class Key(NamedTuple):
    """What a finding is known by: the rule, the file, the function, and a digest of its code.

    Findings that are equal in all of these are told apart by counting them.
    """

    path: str
    code: str
    function: str
    text: str


def key(finding: Finding, path: str, text: str) -> Key:
    """Give what a finding is known by.

    Args:
        finding: The finding.
        path: Its file, counted from wherever the answer is to hold.
        text: The source text of its place.

    Returns:
        What stays as it is when lines move, code is formatted anew and comments change.
    """
    digest = hashlib.sha256(_essence(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Key(spelled(path), finding.code, spelled(finding.function), digest)


def spelled(text: str) -> str:
    """Spell out the undecodable bytes of a name, for which UTF-8 has no code."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _essence(text: str) -> str:
    """Take away what a formatter may change: comments, white space, parentheses, commas, kinds of quotes."""
    return _LAYOUT.sub("", _LITERAL.sub(lambda found: found["string"] or "", text))
