"""Commands in Markdown, reStructuredText, and notebooks."""

from __future__ import annotations

import html
import json
import re
import textwrap
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.launches.shell import Shell

_SHELL_LANGUAGES: Final = frozenset(
    {
        "", "sh", "shell", "bash", "zsh", "console", "terminal", "text", "txt", "none", "plain", "plaintext",
        "cmd", "shell-session", "sh-session", "shellsession", "bash-session", "shellscript", "shell-script",
        "commandline", "command-line", "slurm", "sbatch", "default",
    }
)  # fmt: skip
_PYTHON_LANGUAGES: Final = frozenset({"python", "py", "ipython", "python3", "ipython3", "jupyter"})
_PROMPT: Final = re.compile(r"\s*(?:\([\w./-]+\)\s*)?(?:[\w.@:~/\[\]-]*[$%\u276f\u279c]|>)\s+(?=\S)")
_DIRECTIVE: Final = re.compile(r"\s*\.\. (?:code-block|code|sourcecode|prompt|highlight)::\s*(\S*).*")
_BASH_CELL: Final = re.compile(r"\s*%%(?:bash|sh|shell|script\s+(?:bash|sh))\b.*")
_INTERPOLATED: Final = re.compile(r"(?<!\$)\{[A-Za-z_][\w.\[\]'\"]*\}")
_PREFORMATTED: Final = re.compile(r"<pre\b[^>]*>(.*?)</pre>", re.DOTALL | re.IGNORECASE)
_TAG: Final = re.compile(r"</?\w[^>]*>")
_DEEPEST: Final = 3


def read_block(text: str, line: int, language: str, shell: Shell) -> None:
    """Read a block of code.

    Args:
        text: The lines.
        line: The line of the document at which they begin.
        language: The language, in lower case; it can be empty.
        shell: The shell that reads the commands.
    """
    if language in _PYTHON_LANGUAGES:
        read_cell(text, lambda row, _: line + row, shell)
    elif language in _SHELL_LANGUAGES:
        shell.read(_without_prompts(textwrap.dedent(text)), line)


def _without_prompts(text: str) -> str:
    """Return the commands after prompts, in their lines; all lines if none has a prompt."""
    lines = text.split("\n")
    if not any(_PROMPT.match(line) and not line.lstrip().startswith(">") for line in lines):
        return text
    kept = []
    continues = False
    for line in lines:
        prompt = _PROMPT.match(line)
        command = line[prompt.end() :] if prompt is not None else line if continues else ""
        continues = command.rstrip().endswith("\\")
        kept.append(command)
    return "\n".join(kept)


def read_markdown(text: str, shell: Shell, first: int = 1, depth: int = 0) -> None:
    """Read the blocks of code of a Markdown document. A heading returns to the root."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  # few projects contain a launch

    for token in MarkdownIt("commonmark").disable("inline").parse(text):
        if token.type == "heading_open":
            shell.folder = ""
        elif token.type == "html_block" and token.map is not None:
            for block in _PREFORMATTED.finditer(token.content):
                line = first + token.map[0] + token.content.count("\n", 0, block.start(1))
                read_block(html.unescape(_TAG.sub("", block[1])), line, "", shell)
        elif token.type in {"fence", "code_block"} and token.map is not None:
            is_fence = token.type == "fence"
            line = first + token.map[0] + is_fence
            if not is_fence and "```" in token.content and depth < _DEEPEST:
                read_markdown(textwrap.dedent(token.content), shell, line, depth + 1)
                continue
            words = re.split(r"[\s,{}:]+", token.info.strip("{. ").lower(), maxsplit=1)
            read_block(token.content, line, words[0].lstrip("."), shell)


def read_rst(text: str, shell: Shell) -> None:
    """Read the blocks of code of a reStructuredText document."""
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        directive = _DIRECTIVE.fullmatch(line)
        is_literal = line.rstrip().endswith("::") and not line.lstrip().startswith(".. ")
        if directive is None and not is_literal:
            continue
        begin = index
        while index < len(lines) and (not lines[index].strip() or _indent(lines[index]) > _indent(line)):
            index += 1
        block = ["" if re.match(r"\s*:[\w-]+:", line) else line for line in lines[begin:index]]
        language = directive[1].lower() if directive is not None else ""
        read_block("\n".join(block), begin + 1, language, shell)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class Lines:
    """Finds the lines of texts that a parser returns without their positions, in order."""

    def __init__(self, text: str) -> None:
        """Start at the beginning of the file."""
        self._text = text
        self._position = 0

    def of(self, part: str) -> int:
        """Return the line of the next place that contains a text, or else of the first one."""
        found = self._text.find(part, self._position) if part else -1
        if found < 0:
            found = max(self._text.find(part), 0)
        self._position = max(self._position, found)
        return self._text.count("\n", 0, found) + 1


def read_notebook(text: str, shell: Shell) -> None:
    """Read the `!` lines and the `%%bash` cells of a Jupyter notebook."""
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        return
    lines = Lines(text)
    for cell in _items(notebook, "cells"):
        source = cell.get("source") if isinstance(cell, dict) and cell.get("cell_type") == "code" else None
        if isinstance(source, list):
            source = "".join(part for part in source if isinstance(part, str))
        if isinstance(source, str):
            read_cell(source, lambda _, line: lines.of(json.dumps(line, ensure_ascii=False)[1:-1]), shell)


def _items(value: Any, key: str) -> Iterable[Any]:  # JSON of any type
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else ()


def read_cell(text: str, line_of: Any, shell: Shell) -> None:
    """Read the commands in a cell of a notebook.

    Args:
        text: The cell.
        line_of: Returns the line of the file, from the row in the cell and its text.
        shell: The shell that reads the commands.
    """
    rows = text.split("\n")
    first = next((row for row, line in enumerate(rows) if line.strip()), 0)
    if _BASH_CELL.fullmatch(rows[first]):
        if first + 1 < len(rows):
            shell.read("\n".join(rows[first + 1 :]), line_of(first + 1, rows[first + 1]))
        return
    row = 0
    while row < len(rows):
        begin = row
        while rows[row].endswith("\\") and row + 1 < len(rows):
            row += 1
        row += 1
        command = "\n".join(rows[begin:row]).lstrip()
        if command.startswith(("%cd ", "!cd ")):
            shell.change(command[4:].strip().strip("'\""))
        elif command.startswith(("!", "%run ", "%sh ")):
            command = (
                f"python {command[5:]}"
                if command.startswith("%run ")
                else command.removeprefix("%sh").lstrip("!")
            )
            with shell.here():
                shell.read(_INTERPOLATED.sub("$_", command), line_of(begin, rows[begin]))
