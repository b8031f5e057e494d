"""What a function does with a file after it is written: verify it, or resume a download of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import libcst as cst
from libcst import matchers as m

from fsrace_lint.catalog.lexicon import meaning, says, words
from fsrace_lint.fixes.nodes import REPORT, last_name, within
from fsrace_lint.fixes.recipe import RefusalError
from fsrace_lint.fixes.statements import following, leaving
from fsrace_lint.fixes.text import is_path, is_text
from fsrace_lint.fixes.tree import SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

_LOOKING: Final = frozenset({"open", "remove", "stat", "unlink"})
"""What code that verifies a file may also do with it."""
_ENDING: Final = m.Return() | m.Break() | m.Continue() | m.Raise() | m.Assert()
_APPENDING: Final = m.Arg(m.SimpleString(m.MatchRegex(r"[\"'](ab\+?|a\+b)[\"']")))


class Verification(NamedTuple):
    """The statement that ends the verification of a file, and the places that name the file until there."""

    last: cst.CSTNode
    paths: tuple[cst.BaseExpression, ...]


def verification(target: Target, statement: cst.CSTNode, path: cst.BaseExpression) -> Verification | None:
    """Find the code after a statement that verifies the written file, before which it must not be renamed.

    Returns:
        None if no code verifies it, or if that code verifies an existing file too.

    Raises:
        RefusalError: The rename cannot come after that code.
    """
    tree = target.tree
    before: list[cst.CSTNode] = []
    is_movable = True
    for rest, around in _following(tree, statement):
        later = [*before, *rest]
        found = _verification(tree, later, path)
        if found is not None:
            until = later[: later.index(found.last) + 1]
            is_left = any(leaving(tree, each) is not None for each in until)
            if not is_movable or is_left or not all(_is_looking(tree, each) for each in found.paths):
                line = tree.span(found.last).line
                raise RefusalError(f"the rename cannot come after line {line}, which verifies the file")
            return found
        before = later
        is_movable &= isinstance(around, cst.With)
    return None


def refuse_resumed(target: Target, path: cst.BaseExpression) -> None:
    """Refuse to rename a file if a later run continues to download it.

    Raises:
        RefusalError: The function asks a server for a part of a file, or appends to the same file.
    """
    tree = target.tree
    scope = next((node for node in tree.ancestors(target.call) if isinstance(node, SCOPES)), tree.module)
    reason = "the download is resumed, and the next run would not find the temporary file"
    for node in within(scope):
        match node:
            case cst.SimpleString() if str(node.evaluated_value).lower().startswith(("range", "bytes=")):
                raise RefusalError(reason)
            case cst.FormattedStringText(value=text) if text.startswith("bytes="):
                raise RefusalError(reason)
            case cst.Call(args=[first, *_]) if m.matches(
                node, m.Call(args=[m.Arg(), _APPENDING, m.ZeroOrMore()])
            ):
                if _code(tree, first.value) == _code(tree, path):
                    raise RefusalError(reason)
    for given in target.call.args:
        is_off = isinstance(given.value, cst.Name) and given.value.value in {"False", "None"}
        if given.keyword is not None and says(given.keyword.value, "resumption") and not is_off:
            raise RefusalError(reason)


def refuse_other_kind(
    target: Target, checked: Verification, path: cst.BaseExpression, *, is_pathlib: bool
) -> None:
    """Refuse to verify a temporary name that is text, where the path may be an object.

    Raises:
        RefusalError: The code that verifies the file may call a method of the path.
    """
    tree = target.tree
    if is_pathlib or (is_text(tree, path) and not is_path(tree, path)):
        return
    for each in checked.paths:
        call = next(node for node in tree.ancestors(each) if isinstance(node, cst.Call))
        name = last_name(call.func)
        if each not in [given.value for given in call.args] or name not in {*_LOOKING, "getsize"}:
            said = tree.module.code_for_node(path)
            raise RefusalError(f"`{name}()`, which verifies the file, may need `{said}` as a path object")


def _following(tree: Tree, statement: cst.CSTNode) -> Iterator[tuple[Sequence[cst.CSTNode], cst.CSTNode]]:
    """Yield the statements after a statement, and after what is around it, each with what is around them.

    It ends at a branch: code after it runs if the file is not written, too.
    """
    while isinstance(block := tree.parents[statement], cst.IndentedBlock | cst.Module):
        around = tree.parents.get(block, block)
        yield following(tree, statement), around
        if not isinstance(around, cst.With | cst.Try | cst.For | cst.While):
            return
        statement = around


def _verification(
    tree: Tree, statements: Iterable[cst.CSTNode], path: cst.BaseExpression
) -> Verification | None:
    last, paths, seen = None, list[cst.BaseExpression](), list[cst.BaseExpression]()
    results: set[str] = set()
    for statement in statements:
        seen += _uses(tree, statement, path)
        is_check = _checks(statement) or bool(results & _names(statement))
        if is_check:
            results |= _assigned(statement)
        if is_check and seen and (m.findall(statement, _ENDING) or _is_call(statement)):
            last, paths = statement, [*seen]
    return None if last is None else Verification(last, tuple(paths))


def _uses(tree: Tree, statement: cst.CSTNode, path: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield the places in a statement that name a path, except in what it reports."""
    said = _code(tree, path)
    for node in within(statement):
        if isinstance(node, type(path)) and _code(tree, node) == said:
            around = list(tree.ancestors(node))
            is_reported = any(
                isinstance(each, cst.Raise)
                or (isinstance(each, cst.Assert) and each.msg in (node, *around))
                or m.matches(each, REPORT)
                for each in around
            )
            if not is_reported:
                yield cst.ensure_type(node, type(path))


def _is_looking(tree: Tree, path: cst.CSTNode) -> bool:
    """Check whether the call around a path only looks at the file."""
    call = next((each for each in tree.ancestors(path) if isinstance(each, cst.Call)), None)
    return call is not None and (last_name(call.func) in _LOOKING or _is_named_check(call))


def _checks(statement: cst.CSTNode) -> bool:
    return any(isinstance(node, cst.Call) and _is_named_check(node) for node in within(statement))


def _is_named_check(call: cst.Call) -> bool:
    return not meaning("checksum").isdisjoint(words(last_name(call.func)))


def _is_call(statement: cst.CSTNode) -> bool:
    """Check whether a statement is a call that verifies the file, and raises an exception itself."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as call)]):
            return _is_named_check(call)
    return False


def _assigned(statement: cst.CSTNode) -> set[str]:
    targets = m.findall(statement, m.AssignTarget(target=m.Name()))
    return {cst.ensure_type(each, cst.AssignTarget).target.value for each in targets}  # type: ignore[attr-defined]


def _names(statement: cst.CSTNode) -> set[str]:
    return {node.value for node in within(statement) if isinstance(node, cst.Name)}


def _code(tree: Tree, expression: cst.CSTNode) -> str:
    bare = expression.with_changes(lpar=[], rpar=[]) if hasattr(expression, "lpar") else expression
    return tree.module.code_for_node(bare)
