"""Refer to a name of another module, and add an import at the top if needed."""

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
    """Return an expression for `module.name` at the target, and the import line that it needs.

    `line` is the import to add if the file has none. Refuses if the name may have
    another meaning at the target.
    """
    full = f"{module}.{name}"
    for local, bindings in target.tree.names.imported.items():
        meaning = bindings[0].meaning
        if meaning in (full, module) and _standing(target, local, meaning) == (True, None):
            return _reference(local, None if meaning == full else name), ()
    direct = line.startswith("from ")
    added = name if direct else module
    if direct and target.tree.names.starred:
        raise RefusalError(f"a star import may give `{name}` another meaning")
    _, trouble = _standing(target, added, full if direct else module)
    if trouble is not None:
        raise RefusalError(trouble)
    return _reference(added, None if direct else name), (line,)


class _KeepingLineEnds(cst.CSTTransformer):
    """Makes default line endings explicit, so that the default of the module can change."""

    def __init__(self, default: str) -> None:
        super().__init__()
        self._newline = cst.Newline(value=default)

    def leave_Newline(self, original_node: cst.Newline, updated_node: cst.Newline) -> cst.Newline:  # noqa: ARG002, N802  # as libcst calls it
        return updated_node if updated_node.value is not None else self._newline


def add_imports(module: cst.Module, lines: Iterable[str], newline: cst.Newline) -> cst.Module:
    """Add each import line once, where libcst adds imports: after the imports at the top."""
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
    """Pass only the imports at the top to libcst, because it copies everything that it is given."""
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
    """Attach comments above the first statement to that statement instead of the file."""
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
    """Check whether the module imports a name at its top level, and why the target cannot use it."""
    tree = target.tree
    bindings = tree.names.imported.get(local, ())
    if local in tree.names.bound or any(binding.meaning != meaning for binding in bindings):
        return False, f"the name `{local}` has another meaning in this file"
    scopes = {tree.begin(node) for node in tree.ancestors(target.call) if isinstance(node, SCOPES)}
    if any(not scopes.isdisjoint(binding.standing.scopes) for binding in bindings):
        return False, f"`{local}` is imported inside the same function, and may not be defined here yet"
    tops = [binding.standing.span for binding in bindings if binding.standing.is_top]
    if tops and min(tops) > tree.span(target.call):
        return True, f"`{local}` is imported only after this line"
    return bool(tops), None


def _reference(local: str, attribute: str | None) -> cst.BaseExpression:
    if attribute is None:
        return cst.Name(local)
    return cst.Attribute(cst.Name(local), cst.Name(attribute))
