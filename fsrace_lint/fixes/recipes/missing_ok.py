"""Make a delete accept that the file is already gone."""

from __future__ import annotations

from typing import Final

import libcst as cst

from fsrace_lint.fixes.arguments import switch_on
from fsrace_lint.fixes.callee import called, is_pathlib_method, refuse_text_argument
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, Target, TreeEdit
from fsrace_lint.fixes.statements import wrap
from fsrace_lint.syntax.builtin_exceptions import handles

_HANDLED: Final = frozenset(("ignore_errors", "onerror", "onexc"))


def recipe(target: Target) -> Change:
    """Set `missing_ok`, ignore the errors of `rmtree`, or suppress FileNotFoundError.

    Tests stay: without `exists` or `isfile` more would be deleted, and they say no where a delete fails.
    """
    tree, call = target.tree, target.call
    name = called(tree, call)
    if is_pathlib_method(name, "unlink"):
        refuse_text_argument(name, call)
        first = 0 if name.startswith(".") else 1
        return Change((TreeEdit(call, switch_on(call, "missing_ok", first, tree.newline)),))
    if name == "shutil.rmtree":
        _check_rmtree(call)
        return Change((TreeEdit(call, switch_on(call, "ignore_errors", 1, tree.newline)),))
    if name == ".rmdir" and call.args:
        raise RefusalError("a path's rmdir takes no arguments, so this is not pathlib")
    if name in ("os.remove", "os.unlink", "os.rmdir") or is_pathlib_method(name, "rmdir"):
        return _suppressed(target)
    if name == "os.removedirs":
        raise RefusalError("os.removedirs also deletes the parents, and stops at the first that is in use")
    raise RefusalError(f"{name.lstrip('.')} does not delete anything")


def _check_rmtree(call: cst.Call) -> None:
    given = [argument.keyword.value for argument in call.args if argument.keyword is not None]
    by_position = [argument for argument in call.args if argument.keyword is None and not argument.star]
    if _HANDLED.intersection(given) or len(by_position) > 1:
        raise RefusalError("rmtree has been told already what to do about errors")


def _suppressed(target: Target) -> Change:
    tree = target.tree
    if tree.names.knows("FileNotFoundError"):
        raise RefusalError("the name FileNotFoundError also means something else in this file")
    for node in tree.ancestors(target.call):
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            break
        if isinstance(node, cst.With) and any(_tolerates(item.item) for item in node.items):
            raise RefusalError("the call stands in a suppress() already")
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
