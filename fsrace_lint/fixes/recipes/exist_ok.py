"""Make the creation of a directory accept an existing directory."""

from __future__ import annotations

from functools import partial
from typing import Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.arguments import calling, named, switch_on, with_keyword
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.coordination import named_helper, present_helper
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, Target, TreeEdit
from fsrace_lint.fixes.statements import own_statement, unwrap

_ERROR: Final = "FileExistsError"
_SAID: Final = "`exist_ok`"
_THIRD: Final = 2
_SEVENTH: Final = 6


def recipe(target: Target) -> Change:
    """Set `exist_ok`, and remove a check that becomes redundant."""
    tree, call = target.tree, target.call
    api = api_of(target)
    _refuse_handled(target)
    path = _only_path(target, api)
    is_method = is_path_method(api, "mkdir")
    own = named_helper(target, "ensure_dir") if is_method else present_helper(target, "ensure_dir")
    if path is not None and own is not None:
        return Change((TreeEdit(call, calling(own[0], [cst.Arg(path)])), *unwrap(target)), own[1])
    if api == "os.mkdir":
        return _made_with_parents(target)
    if api == "shutil.copytree":
        if any(_is_false(argument, "dirs_exist_ok") for argument in call.args):
            raise RefusalError(
                "`dirs_exist_ok=False` is explicit, so failing on an existing directory is intentional"
            )
        target.refuse_before((3, 8), "`dirs_exist_ok`")
        # Without its test the copy would run each time.
        return Change((TreeEdit(call, switch_on(call, "dirs_exist_ok", _SEVENTH, tree.newline)),))
    if api == "os.makedirs":
        target.refuse_before((3, 2), _SAID)
        rewrite = switch_on(call, "exist_ok", _THIRD, tree.newline)
    elif is_path_method(api, "mkdir"):
        target.refuse_before((3, 5), _SAID)
        third = _THIRD if receiver(target) is not None else _THIRD + 1
        rewrite = switch_on(call, "exist_ok", third, tree.newline)
    else:
        raise RefusalError(f"`{api.removeprefix('*.')}` is not known to accept an existing directory")
    return Change((TreeEdit(call, rewrite), *unwrap(target)))


def _only_path(target: Target, api: str) -> cst.BaseExpression | None:
    """Return the path, if the call is a statement and passes nothing else that matters."""
    given = target.call.args
    if own_statement(target) is None:
        return None
    if api in {"os.mkdir", "os.makedirs"}:
        return given[0].value if len(given) == 1 and given[0].keyword is None and not given[0].star else None
    names = [argument.keyword.value for argument in given if argument.keyword is not None]
    return receiver(target) if is_path_method(api, "mkdir") and names == ["parents"] else None


def _is_false(argument: cst.Arg, keyword: str) -> bool:
    named = argument.keyword is not None and argument.keyword.value == keyword
    return named and isinstance(argument.value, cst.Name) and argument.value.value == "False"


def _made_with_parents(target: Target) -> Change:
    """Use `os.makedirs()` in place of `os.mkdir()`, which cannot accept an existing directory."""
    call = target.call
    target.refuse_before((3, 2), _SAID)
    keywords = {given.keyword.value for given in call.args if given.keyword is not None}
    if "dir_fd" in keywords or any(given.star for given in call.args):
        raise RefusalError("`os.makedirs()` does not accept `dir_fd`, which the call passes or may pass")
    function: cst.BaseExpression
    imports: tuple[str, ...] = ()
    if isinstance(call.func, cst.Attribute):
        function = call.func.with_changes(attr=cst.Name("makedirs"))
    else:
        function, imports = spell(target, "os", "makedirs", "import os")
    rewrite = partial(_as_makedirs, function=function, newline=target.tree.newline)
    return Change((TreeEdit(call, rewrite), *unwrap(target)), imports)


def _as_makedirs(call: cst.Call, function: cst.BaseExpression, newline: cst.Newline) -> cst.Call:
    """Turn `os.mkdir(path, mode)` into `os.makedirs(path, mode, exist_ok=True)`."""
    given = [
        each.with_changes(keyword=cst.Name("name"))
        if each.keyword is not None and each.keyword.value == "path"
        else each
        for each in call.args
    ]
    added = named("exist_ok", cst.Name("True"))
    return with_keyword(call.with_changes(func=function, args=given), added, newline)


def _refuse_handled(target: Target) -> None:
    """Refuse a call whose FileExistsError is handled: the program may use it to find out who is first.

    Raises:
        RefusalError: A handler around the call names the exception.
    """
    inner: cst.CSTNode = target.call
    for node in target.tree.ancestors(target.call):
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            return
        if isinstance(node, cst.Try | cst.TryStar) and node.body is inner:
            kinds = [handler.type for handler in node.handlers if handler.type is not None]
            if any(m.findall(kind, m.Name(_ERROR)) for kind in kinds):
                raise RefusalError(f"an `except` clause around the call already handles `{_ERROR}`")
        inner = node
