"""Extraction of facts from many files, in multiple processes if there are enough of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.engine.parallel.workers import NAMES, Task
from fsrace_lint.syntax.extract import SyntaxProblem, extract
from fsrace_lint.syntax.model import FileFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.engine.parallel.progress import Observer
    from fsrace_lint.files.source import Source


class _Extracted(msgspec.Struct, array_like=True):
    """The facts of a source file, or the reason why there are none."""

    facts: FileFacts | None
    problem: SyntaxProblem = SyntaxProblem("", 1, 1)


def extracted(sources: Sequence[Source], jobs: int, observer: Observer) -> list[FileFacts | SyntaxProblem]:
    """Extract the facts of many files.

    Args:
        sources: The files.
        jobs: The maximum number of processes.
        observer: Receives progress and timings.

    Returns:
        For each file, in order, its facts or the reason why there are none.
    """

    def work(source: Source) -> _Extracted:
        with observer.phase("extract"):
            found = extract(source)
        return _Extracted(None, found) if isinstance(found, SyntaxProblem) else _Extracted(found)

    sizes = [len(source.data) for source in sources]
    results = Task(work, _Extracted, "extract", NAMES).each(sources, sizes, jobs, observer)
    return [result.problem if result.facts is None else result.facts for result in results]
