"""What is said of a mistake in a configuration file: in TOML's words, with what was probably meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import msgspec

_TOML_WORDS: Final = {"str": "string", "int": "integer", "bool": "boolean", "object": "table"}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Give the known word that is closest, as the end of a message; nothing where none is close."""
    import difflib  # noqa: PLC0415  # for a mistake only

    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def in_toml_words(error: msgspec.ValidationError) -> tuple[str, str]:
    """Read an error about a value.

    Args:
        error: What msgspec says of it.

    Returns:
        The key, and what is wrong with its value.
    """
    what, _, path = str(error).partition(" - at `$.")
    what = re.sub(r"`([^`]+)`", lambda found: f"{_types(found[1])}", what)
    what = what.replace("Expected", "expected").replace(", got", ", found")
    return path.rstrip("`").replace("[...]", ""), what


def _types(text: str) -> str:
    return " or ".join(_TOML_WORDS.get(word, word) for word in text.split(" | ") if word != "null")
