"""Keys that identify findings across runs, even if lines move or code is reformatted."""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from fsrace_lint.findings.finding import Finding

_TOKEN: Final = re.compile(
    r"""
      (?P<prefix>[bfrtu]{0,2})(?P<quote>\"{3}|'{3}|["'])(?P<string>(?:\\.|(?!(?P=quote)).)*)(?P=quote)
    | (?P<layout>\#[^\r\n]*|[\s\\]+)
    | \w+
    | .
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class Key(NamedTuple):
    """The identity of a finding: the file, the rule, the function, and a digest of its code.

    Findings with equal keys are distinguished by counting them.
    """

    path: str
    code: str
    function: str
    text: str


def key(finding: Finding, path: str, text: str) -> Key:
    """Return the key of a finding.

    Args:
        finding: The finding.
        path: The path of its file, relative to the directory for which the key is to hold.
        text: The source text of its place.

    Returns:
        A key that stays the same if lines move, code is reformatted, or comments change.
    """
    digest = hashlib.sha256(_essence(text).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Key(spelled(path), finding.code, spelled(finding.function), digest)


def spelled(text: str) -> str:
    """Return a name with its undecodable bytes as backslash escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _essence(text: str) -> str:
    """Remove what a formatter may change. Strings change only in the kind of their quotes."""
    tokens = [_token(found) for found in _TOKEN.finditer(text) if found["layout"] is None]
    pairs = itertools.pairwise((*tokens, ")"))
    kept = (one for one, after in pairs if one != "," or after not in ")]}")
    return " ".join(one for one in kept if one not in "()")


def _token(found: re.Match[str]) -> str:
    if found["quote"] is None:
        word = found[0]
        # A formatter may change the case of a number.
        return word.lower() if word[0].isdigit() else word
    import json  # noqa: PLC0415  # needed only for findings

    prefix, string = found["prefix"].lower().replace("u", ""), found["string"]
    if "\\" not in string:
        prefix = prefix.replace("r", "")
    elif "r" not in prefix:
        string = _ESCAPE.sub(lambda escape: escape[1] if escape[1] in "'\"" else escape[0], string)
    return "".join(sorted(prefix)) + json.dumps(string)
