"""Every text that a user reads uses the terms of the field, short sentences, and backticks around code."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING, Final

import click
import pytest
from support import ROOT
from support.pages import DOCS

from fsrace_lint import rules
from fsrace_lint.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE: Final = ROOT / "fsrace_lint"
LONGEST: Final = 35
"""The maximum number of words in a sentence."""
TERMS: Final = {
    r"anew": "again, or recreate",
    r"beside": "next to",
    r"behind (?:a|an|it|the)": "after",
    r"nobody|everybody": "no process, every process",
    r"for ever": "forever",
    r"(?<!cannot )tells?|told": "report, print, say, or show",
    r"stands?": "is",
    r"several": "multiple",
    r"folders?": "directory",
    r"silent(?:ly)?|silences?|silenced": "not reported",
    r"evident(?:ly)?|plausible": "what the call chain shows",
    r"false alarms?": "false positive",
    r"missed alarms?": "false negative",
    r"sketch(?:es)?": "manual fix",
    r"witness(?:es)?": "interleaving",
    r"licence|labelled|catalogue|behaviour|colour(?:s|ed)?": "American spelling",
    r"comes? out otherwise": "can differ",
    r"taken? away": "deleted",
    r"who (?:asks|comes|has|knows|looks|needs|runs|wants)": "the reader or the process",
    r"(?<!there )is no\b": "is not a",
    r"rooms?": "package",
    r"number of the process": "rank",
    r"group of one": "world size 1",
}
"""Patterns of words that the texts do not use, and what to write instead."""
IDENTIFIER: Final = r"(?<![\w/.-])(?:\w+_\w+|\w+\(\)|[A-Z]\w+Error)\b"
KEPT: Final = {
    "fsrace_lint/cli/commands/proving.py": "a program",
    "fsrace_lint/cli/daemon/process.py": "the names of options",
    "fsrace_lint/integrations/vendor.py": "comments that other tools read",
    "fsrace_lint/explore/process/collectives.py": "calls in the columns of a schedule",
    "fsrace_lint/pipeline/exclusions.py": "the names of directories",
    "fsrace_lint/reproduce/scenario_file.py": "the text of a Python file",
    "fsrace_lint/reproduce/usage.py": "the names of methods",
    "fsrace_lint/rules/rename_across_filesystems.py": "the result of a call in an interleaving",
}
"""Files whose literals contain identifiers or terms that are not prose, and what these are."""
NAMES: Final = r"--[a-z-]+|show_silenced"
"""Names of options and of fields, which stay."""


def prose(text: str) -> str:
    """The prose of Markdown: no code blocks, comments, or link targets; code in backticks becomes `X`."""
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?s)``.+?``|`[^`]*`", "X", text)
    text = re.sub(NAMES, "X", re.sub(r"\]\([^)]*\)", "]", text))
    return re.sub(r"\bX(?:, X)+", "X", text)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text. List items, table cells, and headings are separate sentences."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[*+-]|\d+\.) )|\n(?=#)|\|", text):
        yield from re.split(r"(?<=[.!?:;])\s+", " ".join(block.split()))


def problems(text: str) -> Iterator[str]:
    """What is wrong with a text, one line for each problem."""
    plain = prose(text)
    for pattern, instead in TERMS.items():
        for found in re.finditer(rf"\b(?:{pattern})\b", plain, re.IGNORECASE):
            context = plain[max(0, found.start() - 40) : found.end() + 40].replace("\n", " ")
            yield f"'{found[0]}' (write: {instead}): ...{context}..."
    for sentence in sentences(plain):
        if len(sentence.split()) > LONGEST:
            yield f"{len(sentence.split())} words: {sentence}"
    for name in re.findall(IDENTIFIER, plain):
        yield f"'{name}' without backticks"


def literals(source: str) -> Iterator[tuple[int, str]]:
    """The texts of three words or more in code, by line: all string literals that are not docstrings."""
    tree = ast.parse(source)
    skipped = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            node.values
            if isinstance(node, ast.JoinedStr)
            else [node.value]
            if isinstance(node, ast.Expr)
            else ()
        )
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        is_example = "\b" in text
        if len(re.findall(r"[a-z]{2,}", text)) >= 3 and " " in text.strip() and not is_example:
            yield node.lineno, text


def helps() -> Iterator[tuple[str, str]]:
    """The help of every command and option."""
    waiting: list[tuple[str, click.Command]] = [("fsrace-lint", main)]
    while waiting:
        name, command = waiting.pop()
        context = click.Context(command, info_name=name)
        options = [param.help or "" for param in command.params if isinstance(param, click.Option)]
        yield f"{name} --help", "\n\n".join([inspect.cleandoc(command.help or ""), *options])
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                assert found is not None
                waiting.append((f"{name} {each}", found))


def documents() -> Iterator[str]:
    """The pages of the documentation, and the documents at the root."""
    for path in sorted((*DOCS.rglob("*.md"), *ROOT.glob("*.md"))):
        yield path.relative_to(ROOT).as_posix()


def messages() -> Iterator[tuple[str, str]]:
    """The recorded messages of the cases: those of findings, places, outcomes, and fixes."""
    for line in (ROOT / "tests" / "cases" / "messages.txt").read_text("utf-8").split("\n"):
        found = re.match(
            r"FSR\d+ [a-z-]+ \([^)]*\): (.*)|  \S+:\d+ .*?: (.*)|  = (.*)|  \+ [^:]*: (.*)", line
        )
        if found is not None:
            yield line[:40], next(filter(None, found.groups()))


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_texts_in_code(path: Path) -> None:
    found = [f"{line}: {each}" for line, text in literals(path.read_text("utf-8")) for each in problems(text)]
    if path.relative_to(ROOT).as_posix() in KEPT:
        assert found, "this file needs no exception"
    else:
        assert found == []


@pytest.mark.parametrize("name", list(documents()))
def test_documents(name: str) -> None:
    assert list(problems((ROOT / name).read_text("utf-8"))) == []


def test_rule_pages() -> None:
    found = {loaded.rule.code: list(problems(loaded.page)) for loaded in rules.load()}
    assert {code: each for code, each in found.items() if each} == {}


def test_helps() -> None:
    found = {where: list(problems(text)) for where, text in helps()}
    assert len(found) > 10
    assert {where: each for where, each in found.items() if each} == {}


def test_messages() -> None:
    found = [(where, each) for where, text in messages() for each in problems(text)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("It stands in a folder.", "'stands'"),
        ("The call of os_open fails.", "'os_open' without backticks"),
        ("It raises FileNotFoundError.", "'FileNotFoundError' without backticks"),
        ("word " * 36, "36 words"),
    ],
)
def test_problems_are_found(text: str, problem: str) -> None:
    assert problem in next(problems(text))
    assert list(problems(f"`{text}`")) == []
