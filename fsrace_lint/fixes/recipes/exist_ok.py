"""Make the creation of a directory accept an existing directory."""

from __future__ import annotations

from functools import partial
from typing import Final

import libcst as cst

from fsrace_lint.fixes.arguments import named, switch_on, with_keyword
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.handler import handle, refuse_handled
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.nodes import comments
from fsrace_lint.fixes.recipe import Change, RefusalError, Target, TreeEdit
from fsrace_lint.fixes.statements import unwrap
from fsrace_lint.fixes.text import is_text, may_be_empty

# `exists` is true of a file as well, which `exist_ok` refuses: such a test stays.
_TESTS: Final = frozenset(("isdir", "is_dir"))
_THIRD: Final = 2
_SEVENTH: Final = 6


def recipe(target: Target) -> Change:
    """Set `exist_ok`, and remove a directory check that contains only the call."""
    tree, call = target.tree, target.call
    api = api_of(target)
    refuse_handled(target)
    if api == "os.mkdir":
        return _mkdir(target)
    if api == "shutil.copytree":
        if any(_is_false(argument, "dirs_exist_ok") for argument in call.args):
            raise RefusalError(
                "`dirs_exist_ok=False` is explicit, so failing on an existing directory is intentional"
            )
        # Without its test the copy would run each time.
        return Change((TreeEdit(call, switch_on(call, "dirs_exist_ok", _SEVENTH, tree.newline)),))
    if api == "os.makedirs":
        rewrite = switch_on(call, "exist_ok", _THIRD, tree.newline)
    elif is_path_method(api, "mkdir"):
        third = _THIRD if receiver(target) is not None else _THIRD + 1
        rewrite = switch_on(call, "exist_ok", third, tree.newline)
    else:
        raise RefusalError(f"`{api.removeprefix('*.')}` is not known to accept an existing directory")
    return Change((TreeEdit(call, rewrite), *unwrap(target, _TESTS)))


def _is_false(argument: cst.Arg, keyword: str) -> bool:
    named = argument.keyword is not None and argument.keyword.value == keyword
    return named and isinstance(argument.value, cst.Name) and argument.value.value == "False"


def _mkdir(target: Target) -> Change:
    """Use `Path.mkdir(exist_ok=True)` if the path is clearly text or a path, and a `try` otherwise.

    `Path("")` is the current directory, but `os.mkdir("")` is an error. With a `try`, the check stays: on
    some filesystems, `mkdir()` reports a permission error before it reports that the directory exists.
    """
    tree, call = target.tree, target.call
    path = _path(call)
    if not is_text(tree, path.value) or may_be_empty(tree, path.value):
        edit, imports = handle(target, path.value)
        return Change((edit,), imports)
    if path is not call.args[0]:
        raise RefusalError("the path is not the first argument")
    path_type, imports = spell(target, "pathlib", "Path", "from pathlib import Path")
    rewrite = partial(_as_method, path_type=path_type, newline=tree.newline)
    return Change((TreeEdit(call, rewrite), *unwrap(target, _TESTS)), imports)


def _path(call: cst.Call) -> cst.Arg:
    found = None
    for index, argument in enumerate(call.args):
        keyword = None if argument.keyword is None else argument.keyword.value
        if argument.star:
            raise RefusalError(
                "the call has unpacked arguments, which may contain more than a path and a mode"
            )
        if keyword == "dir_fd":
            raise RefusalError("the path is relative to `dir_fd`, which `os.path.isdir()` would ignore")
        if keyword == "path" or (keyword is None and index == 0):
            found = argument
    if found is None:
        raise RefusalError("the call does not pass `path`")
    return found


def _as_method(call: cst.Call, path_type: cst.BaseExpression, newline: cst.Newline) -> cst.Call:
    """Turn `os.mkdir(path, mode)` into `Path(path).mkdir(mode, exist_ok=True)`, and keep its layout."""
    others = call.args[1:]
    opening = call.whitespace_before_args if others else cst.SimpleWhitespace("")
    if isinstance(opening, cst.ParenthesizedWhitespace):
        line_end = cst.TrailingWhitespace(newline=newline)
        opening = opening.with_changes(first_line=line_end, empty_lines=[])
    method = cst.Attribute(_owner(call, path_type), cst.Name("mkdir"))
    return with_keyword(
        call.with_changes(func=method, args=others, whitespace_before_args=opening),
        named("exist_ok", cst.Name("True")),
        newline,
    )


def _owner(call: cst.Call, path_type: cst.BaseExpression) -> cst.Call:
    path = call.args[0].with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
    comma = path.comma
    before = call.whitespace_before_args
    if len(call.args) == 1:
        return cst.Call(func=path_type, args=[path], whitespace_before_args=before)
    if not isinstance(comma, cst.Comma) or not (comments(before) or comments(comma)):
        return cst.Call(func=path_type, args=[cst.Arg(path.value)])
    closing = _closing(call)
    space = comma.whitespace_after
    if isinstance(space, cst.ParenthesizedWhitespace) and closing is not None:
        space = space.with_changes(indent=closing.indent, last_line=closing.last_line)
    path = path.with_changes(comma=comma.with_changes(whitespace_after=space))
    return cst.Call(func=path_type, args=[path], whitespace_before_args=before)


def _closing(call: cst.Call) -> cst.ParenthesizedWhitespace | None:
    last = call.args[-1]
    space = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    return space if isinstance(space, cst.ParenthesizedWhitespace) else None
