"""Markdown pages as readers see them: their blocks of code, their links, their headings.

A comment in front of a block says what its text cannot:

    <!-- file: train.py -->          the block is this file; the blocks below it find it there
    <!-- not run: it needs torch --> the block is not checked, and why

A first line `# train.py` names a file as well.
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
        line: Where it begins.
        kind: The language behind the fence; empty where the block is indented.
        text: What is in it.
        file: The file that it is, or None.
        excuse: Why it is not checked, or None.
    """

    line: int
    kind: str
    text: str
    file: str | None
    excuse: str | None


class Link(NamedTuple):
    """A link of a page, as it is written."""

    line: int
    target: str


def pages() -> list[Path]:
    """Give every page that somebody reads."""
    return [*(ROOT / name for name in OTHERS), *sorted(DOCS.rglob("*.md"))]


@functools.cache
def _tokens(page: Path) -> list[Token]:
    return _PARSER.parse(page.read_text("utf-8"))


def blocks(page: Path) -> Iterator[Block]:
    """Give the blocks of a page, in order."""
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
    """Give the links of a page, those to images too."""
    for token in _tokens(page):
        line = token.map[0] + 1 if token.map else 0
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if target:
                yield Link(line, str(target))


def code(page: Path) -> Iterator[tuple[int, str]]:
    """Give what stands in backticks within the text, with its line."""
    for token in _tokens(page):
        line = token.map[0] + 1 if token.map else 0
        for child in token.children or ():
            if child.type == "code_inline":
                yield line, child.content


@functools.cache
def anchors(page: Path) -> set[str]:
    """Give the anchors of the headings, as the hosts of repositories make them, and so does the site."""
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
