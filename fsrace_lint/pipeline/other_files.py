"""What the other files of a project say about a file that is fixed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.pipeline.run import Run
    from fsrace_lint.syntax.model import FileFacts


def is_needed(run: Run, relative: str, name: str) -> bool:
    """Check whether another file may use a name that a file imports: by an import, or in a text.

    Args:
        run: The run.
        relative: The file with the import.
        name: The name.
    """
    stem = relative.removesuffix(".py").rpartition("/")[2]
    dotted = re.compile(rf"(.*\.)?{re.escape(stem)}\.{re.escape(name)}(\..*)?")
    return any(
        any(row.name in {name, "*"} and row.module.rpartition(".")[2] == stem for row in facts.imports)
        or any(map(dotted.fullmatch, facts.texts))
        for _, facts in _others(run, relative)
    )


def mentioning(run: Run, relative: str, word: str) -> Iterator[tuple[str, str]]:
    """Yield the other files with a name, or with a text that ends like a word, with their content.

    Args:
        run: The run.
        relative: The file to leave out.
        word: The name, or the end of a text.
    """
    for other, facts in _others(run, relative):
        is_named = any(word in function.referenced_names for function in facts.functions)
        if is_named or any(text.endswith(word) for text in facts.texts):
            yield other, run.files[other].source.text


def _others(run: Run, relative: str) -> Iterator[tuple[str, FileFacts]]:
    modules, _ = run.link()
    for other, module in modules.items():
        if module is not None and other != relative:
            yield other, module.facts
