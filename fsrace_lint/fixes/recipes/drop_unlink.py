"""Stop deleting a lock file."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.bindings import FileBindings
from fsrace_lint.fixes.nodes import comments, last_name
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, drop, put
from fsrace_lint.fixes.statements import own_statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.fixes.recipe import Target

_ASKING: Final = frozenset({"exists", "is_file", "isfile", "lexists"})
_DELETING: Final = frozenset({"remove", "unlink"})
_SUPPRESS: Final = m.Call(func=m.Name("suppress") | m.Attribute(attr=m.Name("suppress")))


def recipe(target: Target) -> Change:
    """Remove the statement that deletes the lock file, and each block that contains nothing else."""
    line = own_statement(target)
    if not isinstance(line, cst.SimpleStatementLine):
        raise RefusalError("the call is not a statement on its own line")
    _refuse_asked_for(target)
    edit, kept = _removed(target, line)
    if len(comments(edit.node)) > sum(len(comments(each)) for each in kept):
        raise RefusalError("a comment would be lost")
    return Change((edit,))


def _removed(target: Target, statement: cst.BaseStatement) -> tuple[TreeEdit, Sequence[cst.CSTNode]]:
    """Return the edit that removes a statement and the blocks for it alone, and what stays of its node."""
    parents = target.tree.parents
    block = parents[statement]
    if not isinstance(block, cst.IndentedBlock | cst.Module) or len(block.body) > 1:
        return drop(statement), ()
    around = None if isinstance(block, cst.Module) else parents[block]
    match around:
        case cst.If(test=test, orelse=None) if _only_asks(test) and not isinstance(parents[around], cst.If):
            return _removed(target, around)
        case cst.With(items=[cst.WithItem(item=manager)]) if m.matches(manager, _SUPPRESS):
            return _removed(target, around)
        case cst.Try(orelse=orelse, finalbody=last):
            rest = [each for branch in (orelse, last) if branch is not None for each in branch.body.body]
            return _instead(around, rest) if rest else _removed(target, around)
        case cst.Finally():
            whole = cst.ensure_type(parents[around], cst.Try)
            if not whole.handlers:
                return _instead(whole, whole.body.body)
            kept = (
                *whole.leading_lines,
                whole.body,
                *whole.handlers,
                *([whole.orelse] if whole.orelse else []),
            )
            return TreeEdit(whole, lambda node: node.with_changes(finalbody=None)), kept
    raise RefusalError("the block around the call contains nothing else, and cannot be removed")


def _instead(whole: cst.Try, rest: Sequence[cst.CSTNode]) -> tuple[TreeEdit, Sequence[cst.CSTNode]]:
    """Replace a `try` with the statements that stay of it."""
    first = rest[0]
    lines = [*whole.leading_lines, *getattr(first, "leading_lines", ())]
    return put(whole, first.with_changes(leading_lines=lines), *rest[1:]), (*whole.leading_lines, *rest)


def _only_asks(test: cst.BaseExpression) -> bool:
    """Check whether a test can be removed: it calls nothing, or only asks whether a path exists."""
    calls = [cst.ensure_type(each, cst.Call) for each in m.findall(test, m.Call())]
    asked = [each for each in calls if last_name(each.func) in _ASKING]
    inner = {part for each in asked for given in each.args for part in m.findall(given, m.Call())}
    owners = {part for each in asked for part in m.findall(each.func, m.Call())}
    return all(each in asked or each in inner or each in owners for each in calls)


def _refuse_asked_for(target: Target) -> None:
    """Refuse where a file asks whether the lock file exists, except before it deletes the lock file.

    Raises:
        RefusalError: The lock file would now always exist.
    """
    tree = target.tree
    call = target.call
    function = call.func
    deleted = {tree.module.code_for_node(each.value).strip() for each in call.args[:1]}
    if not deleted and isinstance(function, cst.Attribute):
        deleted = {tree.module.code_for_node(function.value).strip()}
    bindings = FileBindings(ast.parse(tree.text), tree.span(call).line)
    paths = {
        ast.unparse(value)
        for said in deleted
        for value in bindings.values(ast.parse(f"({said}\n)", mode="eval").body, 2)
    }
    for each in bindings.checks(_ASKING, _DELETING):
        asked = [*each.args[:1], *([each.func.value] if isinstance(each.func, ast.Attribute) else [])]
        if any(ast.unparse(value) in paths for given in asked for value in bindings.values(given, 2)):
            raise RefusalError(f"line {each.lineno} checks whether the lock file exists")
    words = {word for path in paths for word in _words(path)}
    for word in sorted(words, key=lambda word: (not word.isidentifier(), word)):
        for path, text in target.surroundings.mentioning(word):
            line = _asked_at(text, word)
            if line:
                raise RefusalError(f"`{path}` may check on line {line} whether the lock file exists")


def _words(path: str) -> Iterator[str]:
    """Yield the words by which another file can mean a path: the last text in it, or an attribute."""
    match ast.parse(path, mode="eval").body:
        case ast.Attribute(attr=name):
            yield name
        case other:
            texts = [each.value for each in ast.walk(other) if isinstance(each, ast.Constant)]
            said = [text.rpartition("/")[2] for text in texts if isinstance(text, str)]
            yield from [word for word in said if word][-1:]


def _asked_at(text: str, word: str) -> int:
    """Return the line where a file may check whether such a path exists, or 0."""
    module = ast.parse(text)
    for each in FileBindings(module, 0).checks(_ASKING, _DELETING):
        bindings = FileBindings(module, each.lineno)
        asked = [*each.args[:1], *([each.func.value] if isinstance(each.func, ast.Attribute) else [])]
        values = (value for given in asked for value in bindings.values(given, 2))
        if any(_means(node, word) for value in values for node in ast.walk(value)):
            return each.lineno
    return 0


def _means(node: ast.AST, word: str) -> bool:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(word)
    return is_text or (isinstance(node, ast.Attribute) and node.attr == word)
