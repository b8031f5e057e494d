"""Name a thing of another module in a file, importing it at the top where that is needed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor, ImportItem

from fsrace_lint.fixes.recipe import RefusalError
from fsrace_lint.fixes.tree import SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.fixes.recipe import Target

_FILE_COMMENT: Final = re.compile(r"#!|#.*coding[:=]|#\s*[\w-]+:|#\s*-\*-|#.*(?i:copyright|licen[cs]e)")
_IMPORT: Final = m.SimpleStatementLine(body=[m.ImportFrom() | m.Import()])


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


class _KeepingLineEnds(cst.CSTTransformer):
    """Writes out the line endings that are the module's default, so that this can become another one."""

    def __init__(self, default: str) -> None:
        super().__init__()
        self._newline = cst.Newline(value=default)

    def leave_Newline(self, original_node: cst.Newline, updated_node: cst.Newline) -> cst.Newline:  # noqa: ARG002, N802  # as libcst calls it
        return updated_node if updated_node.value is not None else self._newline


def add_imports(module: cst.Module, lines: Iterable[str], newline: cst.Newline) -> cst.Module:
    """Put import lines into a module, each once, where libcst puts imports: below those at its top."""
    wanted = []
    for line in sorted(set(lines)):
        match line.split():
            case ["from", source, "import", name]:
                wanted.append(ImportItem(source, name))
            case ["import", source]:
                wanted.append(ImportItem(source))
    if not wanted:
        return module
    own = _with_own_comments(module)
    if newline.value not in (None, module.default_newline):
        kept = own.visit(_KeepingLineEnds(module.default_newline))
        own = kept.with_changes(default_newline=newline.value)
    return _at_the_top(own, wanted)


def _at_the_top(module: cst.Module, wanted: Sequence[ImportItem]) -> cst.Module:
    """Let libcst see the imports at the top alone, which is all that it asks: it copies what it is given."""
    visitor = AddImportsVisitor(CodemodContext(), wanted)
    head = next((i for i, statement in enumerate(module.body) if i and not m.matches(statement, _IMPORT)), 0)
    if not head:
        return visitor.transform_module(module)
    first = module.body[head]
    stand_in = cst.SimpleStatementLine([cst.Pass()], leading_lines=first.leading_lines)
    top = visitor.transform_module(module.with_changes(body=(*module.body[:head], stand_in)))
    follows = first.with_changes(
        leading_lines=cst.ensure_type(top.body[-1], cst.SimpleStatementLine).leading_lines
    )
    return top.with_changes(body=(*top.body[:-1], follows, *module.body[head + 1 :]))


def _with_own_comments(module: cst.Module) -> cst.Module:
    """Give the comments above the first statement that are about it to that statement, not to the file."""
    if not module.body or isinstance(module.body[0], cst.SimpleStatementLine):
        return module
    split = 0
    for index, line in enumerate(module.header):
        if line.comment is None or _FILE_COMMENT.match(line.comment.value):
            split = index + 1
    first = module.body[0]
    own = (*module.header[split:], *first.leading_lines)
    rest = (first.with_changes(leading_lines=own), *module.body[1:])
    return module.with_changes(header=module.header[:split], body=rest)


def _standing(target: Target, local: str, meaning: str) -> tuple[bool, str | None]:
    """Tell whether the module imports a name at its top level, and why the target cannot use it."""
    tree = target.tree
    bindings = tree.names.imported.get(local, ())
    if local in tree.names.bound or any(binding.meaning != meaning for binding in bindings):
        return False, f"the name {local} also means something else in this file"
    scopes = {tree.begin(node) for node in tree.ancestors(target.call) if isinstance(node, SCOPES)}
    if any(not scopes.isdisjoint(binding.standing.scopes) for binding in bindings):
        return False, f"{local} is imported within the same function"
    tops = [binding.standing.span for binding in bindings if binding.standing.is_top]
    if tops and min(tops) > tree.span(target.call):
        return True, f"{local} is imported further down only"
    return bool(tops), None


def _reference(local: str, attribute: str | None) -> cst.BaseExpression:
    if attribute is None:
        return cst.Name(local)
    return cst.Attribute(cst.Name(local), cst.Name(attribute))
