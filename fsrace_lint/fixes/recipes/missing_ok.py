"""Make a delete accept a missing path."""

from __future__ import annotations

from typing import Final

import libcst as cst

from fsrace_lint.fixes.arguments import switch_on
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, Target, TreeEdit
from fsrace_lint.fixes.statements import wrap
from fsrace_lint.syntax.builtin_exceptions import handles

_HANDLED: Final = frozenset(("ignore_errors", "onerror", "onexc"))


def recipe(target: Target) -> Change:
    """Set `missing_ok`, ignore the errors of `rmtree`, or suppress FileNotFoundError.

    Checks stay: without `exists()` or `isfile()`, the code would delete more, or fail where a check is false.
    """
    tree, call = target.tree, target.call
    api = api_of(target)
    if is_path_method(api, "unlink"):
        first = 1 if receiver(target) is None else 0
        return Change((TreeEdit(call, switch_on(call, "missing_ok", first, tree.newline)),))
    if api == "shutil.rmtree":
        _check_rmtree(call)
        return Change((TreeEdit(call, switch_on(call, "ignore_errors", 1, tree.newline)),))
    if api in {"os.remove", "os.unlink", "os.rmdir"} or is_path_method(api, "rmdir"):
        return _suppressed(target)
    if api == "os.removedirs":
        raise RefusalError(
            "`os.removedirs()` also deletes empty parents, and ignoring the error would leave them in place"
        )
    raise RefusalError(f"`{api.removeprefix('*.')}` is not known to accept a missing path")


def _check_rmtree(call: cst.Call) -> None:
    given = [argument.keyword.value for argument in call.args if argument.keyword is not None]
    by_position = [argument for argument in call.args if argument.keyword is None and not argument.star]
    if _HANDLED.intersection(given) or len(by_position) > 1:
        raise RefusalError("the call already specifies how `rmtree` handles errors")


def _suppressed(target: Target) -> Change:
    tree = target.tree
    if tree.names.knows("FileNotFoundError"):
        raise RefusalError("the name `FileNotFoundError` has another meaning in this file")
    for node in tree.ancestors(target.call):
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            break
        if isinstance(node, cst.With) and any(_tolerates(item.item) for item in node.items):
            raise RefusalError("the call is already inside a `suppress()` that covers `FileNotFoundError`")
    suppress, imports = spell(target, "contextlib", "suppress", "import contextlib")
    manager = cst.Call(func=suppress, args=[cst.Arg(cst.Name("FileNotFoundError"))])
    return Change((wrap(target, manager),), imports)


def _tolerates(manager: cst.BaseExpression) -> bool:
    match manager:
        case cst.Call(func=cst.Name(value="suppress") | cst.Attribute(attr=cst.Name(value="suppress"))):
            names = [
                argument.value.value for argument in manager.args if isinstance(argument.value, cst.Name)
            ]
            return handles(names, "FileNotFoundError")
    return False
