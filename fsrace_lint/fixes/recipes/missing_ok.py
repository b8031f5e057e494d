"""Make a delete accept a missing path."""

from __future__ import annotations

from typing import Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.catalog.lexicon import meaning, words
from fsrace_lint.fixes.arguments import switch_on
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.nodes import REPORT
from fsrace_lint.fixes.recipe import Change, RefusalError, Target, TreeEdit
from fsrace_lint.fixes.statements import following, own_statement, unwrap, wrap
from fsrace_lint.syntax.builtin_exceptions import handles

_ERROR: Final = "FileNotFoundError"
_SUPPRESSED: Final = frozenset({"os.remove", "os.unlink", "os.rmdir", "shutil.rmtree"})
_REPORTS: Final = m.SimpleStatementLine(body=[m.Expr(REPORT)])
_OWN_HANDLERS: Final = frozenset({"ignore_errors", "onerror", "onexc"})


def recipe(target: Target) -> Change:
    """Set `missing_ok`, or suppress FileNotFoundError, and remove a check that becomes redundant.

    `rmtree(ignore_errors=True)` would also hide the failures that no other process causes.
    """
    tree, call = target.tree, target.call
    api = api_of(target)
    removed = unwrap(target)
    if not removed:
        _refuse_claim(target)
    if is_path_method(api, "unlink") and not target.lacks((3, 8)):
        first = 1 if receiver(target) is None else 0
        return Change((TreeEdit(call, switch_on(call, "missing_ok", first, tree.newline)), *removed))
    if api in _SUPPRESSED or is_path_method(api, "rmdir", "unlink"):
        if api == "shutil.rmtree":
            _check_rmtree(call)
        return _suppressed(target, removed)
    if api == "os.removedirs":
        raise RefusalError(
            "`os.removedirs()` also deletes empty parents, and ignoring the error would leave them in place"
        )
    raise RefusalError(f"`{api.removeprefix('*.')}` is not known to accept a missing path")


def _check_rmtree(call: cst.Call) -> None:
    given = [argument.keyword.value for argument in call.args if argument.keyword is not None]
    if any(argument.star for argument in call.args):
        raise RefusalError("the call has unpacked arguments, which may specify how `rmtree` handles errors")
    if _OWN_HANDLERS.intersection(given) or len(call.args) - len(given) > 1:
        raise RefusalError("the call already specifies how `rmtree` handles errors")


def _refuse_claim(target: Target) -> None:
    """Refuse a delete whose failure keeps other processes from the code after it.

    Raises:
        RefusalError: The code returns that it deleted the path, or the path is named as work for one process.
    """
    tree = target.tree
    line = own_statement(target)
    later = [] if line is None else [each for each in following(tree, line) if not m.matches(each, _REPORTS)]
    if not later:
        return
    if m.matches(later[0], m.SimpleStatementLine(body=[m.Return(m.Name("True"))])):
        raise RefusalError("the code returns `True` only to the process that deletes the path")
    said = tree.module.code_for_node(target.call)
    functions = (each.name.value for each in tree.ancestors(target.call) if isinstance(each, cst.FunctionDef))
    named = {*words(said), *words(next(functions, ""))}
    if not named.isdisjoint(meaning("claim")) and api_of(target) != "shutil.rmtree":
        raise RefusalError(f"`{said}` may stop all processes but one from running the code after it")


def _suppressed(target: Target, removed: tuple[TreeEdit, ...]) -> Change:
    tree = target.tree
    target.refuse_before((3, 4), "`contextlib.suppress()`")
    if tree.names.knows(_ERROR):
        raise RefusalError(f"the name `{_ERROR}` has another meaning in this file")
    inner: cst.CSTNode = target.call
    for node in tree.ancestors(target.call):
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            break
        if isinstance(node, cst.With) and any(_tolerates(item.item) for item in node.items):
            raise RefusalError(f"the call is already inside a `suppress()` that covers `{_ERROR}`")
        if isinstance(node, cst.Try | cst.TryStar) and node.body is inner and _is_handled(node):
            raise RefusalError(f"an `except` clause around the call already handles `{_ERROR}`")
        inner = node
    suppress, imports = spell(target, "contextlib", "suppress", "import contextlib")
    manager = cst.Call(func=suppress, args=[cst.Arg(cst.Name(_ERROR))])
    return Change((wrap(target, manager), *removed), imports)


def _is_handled(node: cst.Try | cst.TryStar) -> bool:
    kinds = [handler.type for handler in node.handlers]
    names = [each for kind in kinds if kind is not None for each in m.findall(kind, m.Name())]
    return None in kinds or handles([each.value for each in names if isinstance(each, cst.Name)], _ERROR)


def _tolerates(manager: cst.BaseExpression) -> bool:
    match manager:
        case cst.Call(func=cst.Name(value="suppress") | cst.Attribute(attr=cst.Name(value="suppress"))):
            names = [
                argument.value.value for argument in manager.args if isinstance(argument.value, cst.Name)
            ]
            return handles(names, _ERROR)
    return False
