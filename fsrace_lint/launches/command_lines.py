"""Command lines: the commands in a text for a shell, and the files that receive their output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.launches.shell import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_LONGEST: Final = 20_000
_DEEPEST: Final = 100
_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES: Final = re.compile(r"\\([\"$`\\\n])")
_PART: Final = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|((?:[^\"'\\]|\\.)+)", re.DOTALL)
"""Matches a part of a word: in double quotes, in single quotes, or without quotes."""
_APPENDING: Final = frozenset({">>", "&>>"})
_TRUNCATING: Final = frozenset({">", ">|", "&>"})
_SKIPPED: Final = frozenset({"heredoc_body", "function_definition", "comment"})
_NO_WORDS: Final = frozenset(
    {"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect"}
)


class CommandLine(msgspec.Struct, frozen=True):
    """One command, or one redirection of the output of commands.

    Attributes:
        words: The words of the command, without quotes; empty for a redirection.
        output: The file of a redirection.
        appends: Whether the redirection keeps the content of the file.
    """

    words: tuple[str, ...] = ()
    output: str = ""
    appends: bool = False


def command_lines(text: str) -> list[CommandLine]:
    """Return the commands in a text for a shell, in order. Variables stay as they are written."""
    return [*_lines(parsed(text), 0)] if len(text) <= _LONGEST else []


def _lines(node: Node, depth: int) -> Iterator[CommandLine]:
    if node.type in _SKIPPED or depth > _DEEPEST:
        return
    if node.type == "command":
        words = (_text(child) for child in node.named_children if child.type not in _NO_WORDS)
        yield CommandLine(tuple(map(unquoted, words)))
    elif node.type == "file_redirect":
        yield from _redirection(node)
    for child in node.children:
        yield from _lines(child, depth + 1)


def _redirection(node: Node) -> Iterator[CommandLine]:
    """Yield the redirection of the standard output; that of the error output alone is left out."""
    kinds = [child.type for child in node.children]
    target = node.child_by_field_name("destination")
    operator = next((kind for kind in kinds if kind in _APPENDING | _TRUNCATING), None)
    descriptor = next((_text(child) for child in node.children if child.type == "file_descriptor"), "1")
    if operator is not None and target is not None and descriptor == "1":
        yield CommandLine(output=unquoted(_text(target)), appends=operator in _APPENDING)


def unquoted(word: str) -> str:
    """Return a word without its quotes and backslashes."""

    def part(found: re.Match[str]) -> str:
        double, single, plain = found.groups()
        if double is not None:
            return _ESCAPED_IN_QUOTES.sub(lambda each: each[1].strip("\n"), double)
        return single if single is not None else _ESCAPED.sub(lambda each: each[1].strip("\n"), plain)

    return _PART.sub(part, word)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
