"""Whether a failing schedule is the race that a finding describes."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fsrace_lint.findings.finding import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from fsrace_lint.files.spans import Place
    from fsrace_lint.findings.finding import Finding

Lines = dict[str, set[int]]
"""Lines by resolved path of the file."""


class ReachedError(Exception):
    """A line of a finding was run."""


def lines_of(finding: Finding) -> Lines:
    """Return the lines of the statements that take part in a race.

    Args:
        finding: The finding. Its paths are relative to the current directory, or absolute.

    Returns:
        The lines of the smallest statement around each place, with its whole block if it is a `with`.
    """
    return lines_at([finding.place, *(each.place for each in finding.related if each.role is Role.PLACE)])


def lines_at(places: Iterable[Place]) -> Lines:
    """Return the lines of the statements at some places."""
    found: Lines = {}
    for place in places:
        file = Path(place.path).resolve()
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        found.setdefault(str(file), set()).update(_statement(tree, place.span.line))
    return found


def is_as_told(lines: Lines, acting: Iterable[str]) -> bool:
    """Return whether one of the decisive calls of a failing schedule is at a line of the finding.

    Args:
        lines: The lines of the finding.
        acting: The places of the calls, as `file:line`.
    """
    for each in acting:
        file, _, line = each.rpartition(":")
        if line.isdigit() and int(line) in lines.get(file, ()):
            return True
    return False


def raising_if_reached(function: Callable[..., Any], lines: Lines) -> Callable[..., Any]:
    """Return a function that calls another one, and raises `ReachedError` if that one runs one of the lines.

    Args:
        function: The function.
        lines: The lines.

    Returns:
        The function, for a process without other trace functions.
    """
    names: dict[str, set[int]] = {}

    def run(*given: Any) -> None:
        reached = False

        def trace(frame: FrameType, _event: str, _argument: object) -> Any:
            nonlocal reached
            file = frame.f_code.co_filename
            if file not in names:
                names[file] = lines.get(os.path.realpath(file), set())
            reached = reached or frame.f_lineno in names[file]
            return trace if names[file] else None

        sys.settrace(trace)
        try:
            function(*given)
        finally:
            sys.settrace(None)
            if reached:
                raise ReachedError

    return run


def _statement(tree: ast.Module, line: int) -> range:
    """Return the lines of the smallest statement at a line; of a compound statement, those of its header."""
    best = range(line, line + 1)
    size = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(node, ast.Match):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        if not node.lineno <= line <= max(end, node.lineno):
            continue
        # a file that is opened is written in the block of its `with`
        last = node.end_lineno or end if isinstance(node, ast.With | ast.AsyncWith) else max(end, node.lineno)
        if size is None or end - node.lineno < size:
            best, size = range(node.lineno, last + 1), end - node.lineno
    return best
