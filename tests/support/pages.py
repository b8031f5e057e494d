"""Markdown pages as readers see them: their code blocks, links, and headings.

A comment before a block adds information that its text cannot contain:

    <!-- file: train.py -->          the block is this file, which later blocks can use
    <!-- not run: it needs torch --> the block is not checked, for this reason

A first line `# train.py` also names a file.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from markdown_it import MarkdownIt

from support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from markdown_it.token import Token

DOCS = ROOT / "docs"
OTHERS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")

_PARSER = MarkdownIt("commonmark").enable("table")
_NOTE = re.compile(r"<!-- (file|not run): (.+?) -->\s*", re.DOTALL)
_NAMED = re.compile(r"# ([\w./-]+\.\w+)\n")


class Block(NamedTuple):
    """A block of code.

    Attributes:
        line: The line of its fence, or its first line if it is indented.
        kind: The language after the fence; empty for an indented block.
        text: Its content.
        file: The file that it represents, or None.
        excuse: The reason why it is not checked, or None.
    """

    line: int
    kind: str
    text: str
    file: str | None
    excuse: str | None


class Link(NamedTuple):
    """A link of a page, as written."""

    line: int
    target: str


def pages() -> list[Path]:
    """Return every page of the documentation."""
    return [*(ROOT / name for name in OTHERS), *sorted(DOCS.rglob("*.md"))]


@functools.cache
def _tokens(page: Path) -> list[Token]:
    return _PARSER.parse(page.read_text("utf-8"))


def blocks(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page, in order."""
    notes: dict[str, str] = {}
    for token in _tokens(page):
        if token.type == "html_block":
            notes |= dict(_NOTE.findall(token.content))
            continue
        if token.type in ("fence", "code_block"):
            kind = token.info.split()[0] if token.info.strip() else ""
            named = _NAMED.match(token.content)
            file = notes.get("file") or (named[1] if named else None)
            line = token.map[0] + 1 if token.map else 0
            yield Block(line, kind, token.content, file, notes.get("not run"))
        notes = {}


def links(page: Path) -> Iterator[Link]:
    """Yield the links of a page, including links to images."""
    for token in _tokens(page):
        line = token.map[0] + 1 if token.map else 0
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield Link(line, str(target))


def code(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the inline code of a page, with its lines."""
    for token in _tokens(page):
        line = token.map[0] + 1 if token.map else 0
        for child in token.children or ():
            if child.type == "code_inline":
                yield line, child.content


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, in the form that GitHub and the site generate."""
    found: set[str] = set()
    heading = False
    for token in _tokens(page):
        if heading and token.type == "inline":
            shown = "".join(child.content for child in token.children or ())
            name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
            count = 1
            unique = name
            while unique in found:
                unique, count = f"{name}-{count}", count + 1
            found.add(unique)
        heading = token.type == "heading_open"
    return found
