"""Remove imports of the standard library whose last use a fix removes."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from fsrace_lint.fixes.import_block import Lines, sorted_again
from fsrace_lint.fixes.reading import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fsrace_lint.fixes.layout import Layout

_FUTURE: Final = "__future__"
_IN_COMMENTS: Final = re.compile(r"#\s*type:.*|^\s*>>>.*|^\s*\.\.\. .*", re.MULTILINE)
"""Code in type comments and in examples of docstrings."""


def unused(before: str, after: str, is_needed: Callable[[str], bool]) -> list[str]:
    """Return the names that a file imports at its top, and that only the old text uses.

    Only modules of the standard library count, because importing another one can have an effect.

    Args:
        before: The text before the fixes.
        after: The text after them.
        is_needed: Whether other files may use a name of this file.
    """
    lost = names_lost(before, after)
    if not lost:
        return []
    module = parsed(after)
    removable = {each.local for each in _removable(module, Lines(after))} & lost
    return [name for name in sorted(removable) if not (_is_said(module, after, name) or is_needed(name))]


def names_lost(before: str, after: str) -> set[str]:
    """Return the names that only the first of two texts uses; nothing if one does not parse."""
    try:
        return _used(parsed(before)) - _used(parsed(after))
    except (SyntaxError, ValueError, RecursionError):
        return set()


def without_imports(text: str, names: list[str], newline: str, layout: Layout) -> str:
    """Remove the imports of some names, and keep the order of the others."""
    for name in names:
        lines = Lines(text)
        found = next((each for each in _removable(parsed(text), lines) if each.local == name), None)
        if found is not None:
            new = _without(lines.contents, found)
            text = lines.replaced(sorted_again(lines.contents, new, layout), newline)
    return text


class _Imported(NamedTuple):
    """A name that an import statement with lines of its own binds, and its number in the statement."""

    local: str
    statement: ast.Import | ast.ImportFrom
    number: int


def _removable(module: ast.Module, lines: Lines) -> Iterator[_Imported]:
    """Yield the imports that can be removed: each binds its name alone, and has no comment."""
    bound = [_local(alias) for node in ast.walk(module) for alias in getattr(node, "names", ()) if _is(alias)]
    stored = {each.id for each in ast.walk(module) if isinstance(each, ast.Name) and _is_bound(each)}
    ends = [(statement.lineno, statement.end_lineno or statement.lineno) for statement in module.body]
    for place, statement in enumerate(module.body):
        if not isinstance(statement, ast.Import | ast.ImportFrom) or not _is_standard(statement):
            continue
        first, last = ends[place]
        is_shared = any(a <= last and b >= first for a, b in (*ends[:place], *ends[place + 1 :]))
        code = "".join(lines.contents[first - 1 : last])
        if is_shared or "#" in code or not code.isascii():
            continue
        for number, alias in enumerate(statement.names):
            local = _local(alias)
            if bound.count(local) == 1 and local not in stored:
                yield _Imported(local, statement, number)


def _is(alias: object) -> bool:
    return isinstance(alias, ast.alias)


def _is_bound(name: ast.Name) -> bool:
    return not isinstance(name.ctx, ast.Load)


def _local(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _is_standard(statement: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(statement, ast.ImportFrom):
        modules = [statement.module or ""] if not statement.level else [""]
    else:
        modules = [alias.name for alias in statement.names]
    roots = {module.partition(".")[0] for module in modules}
    return roots <= sys.stdlib_module_names - {_FUTURE}


def _used(module: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}


def _is_said(module: ast.Module, text: str, name: str) -> bool:
    """Check whether a text that can be code has a name: `__all__`, annotations, type comments, examples."""
    if any(name in re.findall(r"\w+", comment) for comment in _IN_COMMENTS.findall(text)):
        return True
    texts = (node.value for node in ast.walk(module) if isinstance(node, ast.Constant))
    return any(isinstance(each, str) and name in each and name in _named_in(each) for each in texts)


def _named_in(text: str) -> set[str]:
    """Return the names in a text, if it is an expression."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _without(lines: list[str], found: _Imported) -> list[str]:
    """Return the lines without an import, and without the empty lines of a section that is gone."""
    statement, number = found.statement, found.number
    first, last = statement.lineno - 1, statement.end_lineno or statement.lineno
    aliases = statement.names
    if len(aliases) > 1:
        if number + 1 < len(aliases):
            begin = aliases[number].lineno - 1, aliases[number].col_offset
            end = aliases[number + 1].lineno - 1, aliases[number + 1].col_offset
        else:
            begin = _end(aliases[number - 1])
            end = _end(aliases[number])
        joined = lines[begin[0]][: begin[1]] + lines[end[0]][end[1] :]
        return [*lines[: begin[0]], joined, *lines[end[0] + 1 :]]
    above = next((n for n in range(first) if lines[first - 1 - n].strip()), first)
    below = next((n for n in range(len(lines) - last) if lines[last + n].strip()), len(lines) - last)
    if below and (above or not first):
        kept = max(above, below) if first > above else 0
        return [*lines[: first - above], *[""] * kept, *lines[last + below :]]
    return [*lines[:first], *lines[last:]]


def _end(alias: ast.alias) -> tuple[int, int]:
    return (alias.end_lineno or alias.lineno) - 1, alias.end_col_offset or alias.col_offset
