"""The page of a rule as Markdown."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"([A-Z][a-z ]+):(?: |\Z)")


def paragraphs(page: str) -> list[str]:
    """Turn the page of a rule into Markdown.

    Args:
        page: The docstring of the rule.

    Returns:
        Its title, then its paragraphs, with their labels bold and the examples as code.
    """
    title, *rest = _split(page)
    return [title, *map(_paragraph, rest)]


def _split(text: str) -> list[str]:
    """Split a docstring at its empty lines, but keep an indented example in one piece."""
    found: list[str] = []
    for part in text.split("\n\n"):
        if part.lstrip("\n").startswith("    ") and found and "\n    " in found[-1]:
            found[-1] += f"\n\n{part}"
        else:
            found.append(part)
    return found


def _paragraph(text: str) -> str:
    """Turn a paragraph into Markdown: its label bold, the lines indented below it as code."""
    first, _, code = text.partition("\n    ")
    label = _LABEL.match(first)
    if label is None:
        return text
    if not code:
        return f"**{label[1]}:** {text[label.end() :]}"
    block = re.sub(r"^    ", "", code, flags=re.MULTILINE)
    language = "text" if label[1] == "Interleaving" else "python"
    return f"**{label[1]}:**\n\n```{language}\n{block}\n```"
