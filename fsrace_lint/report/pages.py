"""The page of a rule: its parts, and its Markdown."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_LABEL: Final = re.compile(r"([A-Z][a-z ]+):(?:[ \n]|\Z)")


class PagePart(NamedTuple):
    """A paragraph: its label, its text, and the indented example below it; each may be empty."""

    label: str
    text: str
    code: str = ""


def parts(page: str) -> tuple[str, list[PagePart]]:
    """Split the page of a rule.

    Args:
        page: The docstring of the rule.

    Returns:
        Its title and its paragraphs.
    """
    title, *rest = _split(page)
    return title, [_part(text) for text in rest]


def bullets(text: str) -> list[str]:
    """Return the items of a list in a page, each in one line; none if the text is a paragraph."""
    if not text.startswith("* "):
        return []
    return [" ".join(item.split()) for item in text.removeprefix("* ").split("\n* ")]


def paragraphs(page: str) -> list[str]:
    """Convert the page of a rule to Markdown.

    Args:
        page: The docstring of the rule.

    Returns:
        Its title, then its paragraphs, with bold labels and code blocks.
    """
    title, rest = parts(page)
    return [title, *map(_paragraph, rest)]


def _split(text: str) -> list[str]:
    """Split a docstring at empty lines, but keep an indented example in one piece."""
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
    """Convert a paragraph to Markdown: a bold label, and indented lines as a code block."""
    if not part.label:
        return part.text
    if not part.code:
        between = "\n\n" if bullets(part.text) else " "
        return f"**{part.label}:**{between}{part.text}"
    language = "text" if part.label == "Interleaving" else "python"
    return f"**{part.label}:**\n\n```{language}\n{part.code}\n```"
