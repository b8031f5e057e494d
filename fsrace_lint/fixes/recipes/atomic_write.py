"""Write a file atomically: write to a temporary file, then rename it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst

from fsrace_lint.fixes.arguments import OPEN, argument, calling, named, refuse_other
from fsrace_lint.fixes.blocks import fresh
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver, written_path
from fsrace_lint.fixes.coordination import helper
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit, put
from fsrace_lint.fixes.statements import wrap
from fsrace_lint.fixes.text import ends_in

if TYPE_CHECKING:
    from fsrace_lint.fixes.recipe import Target

_TEXT: Final = ("data", "encoding", "errors", "newline")
_KEPT: Final = frozenset({"encoding", "errors", "newline"})


def recipe(target: Target) -> Change:
    """Open the file with `atomic_write()`, or pass a path from `atomic_path()` to the writer."""
    api = api_of(target)
    if api in {"open", "io.open"}:
        return _opened(target, None)
    if is_path_method(api, "open"):
        return _opened(target, receiver(target))
    if is_path_method(api, "write_text", "write_bytes"):
        return _written(target, is_text=api.endswith("text"))
    return _handed(target)


def _opened(target: Target, path: cst.BaseExpression | None) -> Change:
    """Turn `with open(path, "w") as f` into `with atomic_write(path, "w") as f`."""
    tree, call = target.tree, target.call
    item = tree.parents[call]
    if not isinstance(item, cst.WithItem):
        raise RefusalError(
            "the file is not opened in a `with` statement, so it is unclear when its content is complete"
        )
    given = _by_name(call, OPEN if path is None else OPEN[1:])
    mode = given.get("mode")
    text = mode.evaluated_value if isinstance(mode, cst.SimpleString) else None
    if text not in {"w", "wb", "wt"}:
        raise RefusalError("the file is not opened with a literal mode `w`, `wb`, or `wt`")
    return _by_helper(target, given["file"] if path is None else _bare(path), mode, given)


def _by_helper(
    target: Target,
    path: cst.BaseExpression,
    mode: cst.BaseExpression | None,
    given: dict[str, cst.BaseExpression],
) -> Change:
    function, imports = helper(target, "atomic_write")
    arguments = [cst.Arg(path), *([] if mode is None else [cst.Arg(mode)])]
    arguments += [named(name, value) for name, value in given.items() if name in _KEPT]
    return Change((TreeEdit(target.call, calling(function, arguments)),), imports)


def _written(target: Target, *, is_text: bool) -> Change:
    """Turn `path.write_text(text)` into a `with atomic_write(path, "w") as stream` around its write."""
    call, path = target.call, receiver(target)
    if path is None:
        raise RefusalError("the method is not called on a path object")
    given = _by_name(call, _TEXT if is_text else _TEXT[:1])
    stream = fresh(target, "stream")
    mode = cst.SimpleString('"w"' if is_text else '"wb"')
    function, imports = helper(target, "atomic_write")
    arguments = [cst.Arg(_bare(path)), cst.Arg(mode)]
    arguments += [named(key, value) for key, value in given.items() if key in _KEPT]
    write = cst.Attribute(cst.Name(stream), cst.Name("write"))
    manager = cst.Call(function, arguments)
    inner = TreeEdit(call, calling(write, [cst.Arg(given["data"])]))
    return Change((inner, wrap(target, manager, stream)), imports)


def _handed(target: Target) -> Change:
    """Wrap a writer that takes a path in `with atomic_path(path) as temporary`."""
    path = written_path(target)
    suffix = target.effect.suffix if target.effect is not None else ""
    if suffix and not ends_in(target.tree, path, suffix):
        said = f"`{target.fix.api.removeprefix('*.')}` appends `{suffix}` to a path that does not end in it"
        raise RefusalError(f"{said}, and this path may not")
    temporary = fresh(target, "temporary")
    function, imports = helper(target, "atomic_path")
    manager = cst.Call(function, [cst.Arg(_bare(path))])
    inner = put(path, cst.Name(temporary))
    return Change((inner, wrap(target, manager, temporary)), imports)


def _by_name(call: cst.Call, names: tuple[str, ...]) -> dict[str, cst.BaseExpression]:
    """Return the arguments of a call by parameter name, or refuse those that cannot be kept."""
    refuse_other(call, len(names), *names)
    given = {name: argument(call, index, name) for index, name in enumerate(names)}
    found = {name: each.value for name, each in given.items() if each is not None}
    if "buffering" in found:
        raise RefusalError("the replacement for the call does not accept `buffering`")
    if names[0] in {"file", "data"} and names[0] not in found:
        raise RefusalError(f"the call does not pass `{names[0]}`")
    return found


def _bare(path: cst.BaseExpression) -> cst.BaseExpression:
    return path.with_changes(lpar=[], rpar=[])
