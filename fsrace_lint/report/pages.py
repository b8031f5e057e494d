"""The page of a rule: its parts, and the same as Markdown."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_LABEL: Final = re.compile(r"([A-Z][a-z ]+):(?: |\Z)")


class PagePart(NamedTuple):
    """A paragraph: its label and its text, and the example that is indented below it; each may be empty."""

    label: str
    text: str
    code: str = ""


def parts(page: str) -> tuple[str, list[PagePart]]:
    """Take the page of a rule apart.

    Args:
        page: The docstring of the rule.

    Returns:
        Its title, and its paragraphs.
    """
    title, *rest = _split(page)
    return title, [_part(text) for text in rest]


def paragraphs(page: str) -> list[str]:
    """Turn the page of a rule into Markdown.

    Args:
        page: The docstring of the rule.

    Returns:
        Its title, then its paragraphs, with their labels bold and the examples as code.
    """
    title, rest = parts(page)
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


def _part(text: str) -> PagePart:
    first, _, code = text.partition("\n    ")
    label = _LABEL.match(first)
    if label is None:
        return PagePart("", text)
    if not code:
        return PagePart(label[1], text[label.end() :])
    return PagePart(label[1], "", re.sub(r"^    ", "", code, flags=re.MULTILINE))


def _paragraph(part: PagePart) -> str:
    """Turn a paragraph into Markdown: its label bold, the lines indented below it as code."""
    if not part.label:
        return part.text
    if not part.code:
        return f"**{part.label}:** {part.text}"
    language = "text" if part.label == "Interleaving" else "python"
    return f"**{part.label}:**\n\n```{language}\n{part.code}\n```"
