"""Whether a failing schedule is the race that a finding describes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from fsrace_lint.findings.finding import Role

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fsrace_lint.findings.finding import Finding

Lines = dict[str, set[int]]
"""Lines by resolved path of the file."""


def lines_of(finding: Finding, project: Path) -> Lines:
    """Return the lines of the statements that take part in a race.

    Args:
        finding: The finding.
        project: The directory that its paths are relative to.

    Returns:
        The lines of the smallest statement around each place, with its whole block if it is a `with`.
    """
    places = [finding.place, *(each.place for each in finding.related if each.role is Role.PLACE)]
    found: Lines = {}
    for place in places:
        file = (project / place.path).resolve()
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


def _statement(tree: ast.Module, line: int) -> range:
    best = range(line, line + 1)
    size = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or isinstance(
            node, ast.FunctionDef | ast.ClassDef | ast.If | ast.For
        ):
            continue
        end = node.end_lineno or node.lineno
        if node.lineno <= line <= end and (size is None or end - node.lineno < size):
            best, size = range(node.lineno, end + 1), end - node.lineno
    # a file that is opened is written in the block of its `with`
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith) and node.lineno <= line < node.body[0].lineno:
            return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    return best
