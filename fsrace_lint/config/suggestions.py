"""Suggestions for misspelled words, and validation errors in the terms of TOML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    import msgspec

_TOML_WORDS: Final = {"str": "string", "int": "integer", "bool": "boolean", "object": "table"}


_CUTOFF: Final = 0.8
"""The lowest similarity of a suggestion: `FSR501` is not what `E501` means."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most similar to a word, or None if none is similar."""
    import difflib  # noqa: PLC0415  # only for an error

    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=_CUTOFF)
    return close[0] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion that ends an error message, or an empty string if no known word is similar."""
    close = closest(word, known)
    return f"; did you mean `{close}`?" if close else ""


def in_toml_words(error: msgspec.ValidationError) -> tuple[str, str]:
    """Translate a validation error of msgspec to the terms of TOML.

    Args:
        error: The validation error.

    Returns:
        The key, and what is wrong with its value.
    """
    what, _, path = str(error).partition(" - at `$.")
    what = re.sub(r"`([^`]+)`", lambda found: f"{_types(found[1])}", what)
    what = what.replace("Expected", "expected").replace(", got", ", found")
    return path.rstrip("`").replace("[...]", ""), what


def _types(text: str) -> str:
    return " or ".join(_TOML_WORDS.get(word, word) for word in text.split(" | ") if word != "null")
