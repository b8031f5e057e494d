"""Name a thing of the standard library in a file, importing it at the top where that is needed."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst.helpers import get_full_name_for_node

from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.fixes.names import Import
    from fsrace_lint.fixes.recipe import Target

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_Key = tuple[bool, bool, str]

_SCOPES: Final = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
_FILE_COMMENT: Final = re.compile(r"#!|#.*coding[:=]|#\s*[\w-]+:|#\s*-\*-|#.*(?i:copyright|licen[cs]e)")


def spell(target: Target, module: str, name: str, line: str) -> tuple[cst.BaseExpression, tuple[str, ...]]:
    """Give an expression for `module.name` at the target, and the import line that it needs.

    `line` is the import to add where the file has none. A name that may mean
    something else at the target makes this refuse.
    """
    full = f"{module}.{name}"
    for local, bindings in target.tree.names.imported.items():
        meaning = bindings[0].meaning
        if meaning in (full, module) and _standing(target, local, meaning) == (True, None):
            return _reference(local, None if meaning == full else name), ()
    direct = line.startswith("from ")
    added = name if direct else module
    if direct and target.tree.names.starred:
        raise RefusalError(f"a star import may give {name} another meaning")
    _, trouble = _standing(target, added, full if direct else module)
    if trouble is not None:
        raise RefusalError(trouble)
    return _reference(added, None if direct else name), (line,)


def add_imports(
    updated: cst.Module, original: cst.Module, lines: Iterable[str], newline: cst.Newline
) -> cst.Module:
    """Put import lines at the top of a module, below its docstring and `__future__` imports."""
    new = [_statement(line, newline) for line in set(lines)]
    new.sort(key=_key)
    start = _start(original.body)
    stop = _stop(original.body, start)
    names = [_key(statement)[-1].partition(".")[0] for statement in original.body[start:stop]]
    if not any(name in sys.stdlib_module_names for name in names):
        return _as_own_block(updated, start, new, newline) if new else updated
    body = list(updated.body)
    for added in reversed(new):
        block = enumerate(original.body[start:stop], start)
        index = next((index for index, other in block if _key(other) > _key(added)), stop)
        statement = added
        while index < stop and any(line.comment for line in body[index].leading_lines):
            index += 1
        if index < stop:
            statement = statement.with_changes(leading_lines=body[index].leading_lines)
            body[index] = body[index].with_changes(leading_lines=[])
        body.insert(index, statement)
    return updated.with_changes(body=body)


def _as_own_block(
    updated: cst.Module, start: int, new: Sequence[cst.SimpleStatementLine], newline: cst.Newline
) -> cst.Module:
    blank = cst.EmptyLine(indent=False, newline=newline)
    before, after = list(updated.body[:start]), list(updated.body[start:])
    header, moved = (updated.header, []) if before else _split_header(updated.header)
    if before:
        new = [new[0].with_changes(leading_lines=[blank]), *new[1:]]
    if after:
        lines = [*moved, *after[0].leading_lines]
        if not lines or lines[0].comment:
            lines = [blank, *lines]
        after[0] = after[0].with_changes(leading_lines=lines)
    return updated.with_changes(header=header, body=[*before, *new, *after])


def _split_header(
    header: Sequence[cst.EmptyLine],
) -> tuple[Sequence[cst.EmptyLine], Sequence[cst.EmptyLine]]:
    split = 0
    for index, line in enumerate(header):
        if line.comment is None or _FILE_COMMENT.match(line.comment.value):
            split = index + 1
    return header[:split], header[split:]


def _standing(target: Target, local: str, meaning: str) -> tuple[bool, str | None]:
    """Tell whether the module imports a name at its top level, and why the target cannot use it."""
    tree = target.tree
    bindings = tree.names.imported.get(local, ())
    if local in tree.names.bound or any(binding.meaning != meaning for binding in bindings):
        return False, f"the name {local} also means something else in this file"
    scopes = {node for node in tree.ancestors(target.call) if isinstance(node, _SCOPES)}
    tops = []
    for binding in bindings:
        around = list(tree.ancestors(binding.statement))
        if not scopes.isdisjoint(around):
            return False, f"{local} is imported within the same function"
        if len(around) == 2:
            tops.append(tree.span(binding.statement))
    if tops and min(tops) > tree.span(target.call):
        return True, f"{local} is imported further down only"
    return bool(tops), None


def _reference(local: str, attribute: str | None) -> cst.BaseExpression:
    if attribute is None:
        return cst.Name(local)
    return cst.Attribute(cst.Name(local), cst.Name(attribute))


def _statement(line: str, newline: cst.Newline) -> cst.SimpleStatementLine:
    small = cst.ensure_type(cst.parse_statement(line), cst.SimpleStatementLine).body
    return cst.SimpleStatementLine(body=small, trailing_whitespace=cst.TrailingWhitespace(newline=newline))


def _imports(statement: cst.CSTNode) -> Sequence[Import]:
    if not isinstance(statement, cst.SimpleStatementLine):
        return ()
    return [small for small in statement.body if isinstance(small, cst.Import | cst.ImportFrom)]


def _start(body: Sequence[Statement]) -> int:
    start = 0
    for index, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0]
        is_text = isinstance(first, cst.Expr) and isinstance(
            first.value, cst.SimpleString | cst.ConcatenatedString
        )
        if (index == 0 and is_text) or any(
            _key_of(small)[-1] == "__future__" for small in _imports(statement)
        ):
            start = index + 1
    return start


def _stop(body: Sequence[Statement], start: int) -> int:
    for index, statement in enumerate(body[start:], start):
        whole = isinstance(statement, cst.SimpleStatementLine) and len(_imports(statement)) == len(
            statement.body
        )
        apart = index > start and any(line.comment is None for line in statement.leading_lines)
        if not whole or apart:
            return index
    return len(body)


def _key(statement: cst.CSTNode) -> _Key:
    return _key_of(_imports(statement)[0])


def _key_of(statement: Import) -> _Key:
    if isinstance(statement, cst.Import):
        return False, False, statement.names[0].evaluated_name.lower()
    module = get_full_name_for_node(statement.module) if statement.module else ""
    return True, bool(statement.relative), (module or "").lower()
