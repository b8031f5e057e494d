"""Create a temporary file or directory in the directory that it is moved to."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.arguments import argument, named, needed, with_keyword
from fsrace_lint.fixes.callee import api_of, is_path_method, receiver
from fsrace_lint.fixes.imports import spell
from fsrace_lint.fixes.recipe import Change, RefusalError, TreeEdit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.fixes.recipe import Target

_MAKING: Final = {
    "tempfile.mkdtemp": 2,
    "tempfile.mkstemp": 2,
    "tempfile.TemporaryDirectory": 2,
    "tempfile.NamedTemporaryFile": None,
}
"""The position of their `dir` parameter."""
_HOPS: Final = 3


def recipe(target: Target) -> Change:
    """Pass the directory of the destination as `dir=` to the `tempfile` call whose path is moved."""
    tree, call = target.tree, target.call
    api, source = api_of(target), receiver(target)
    if api in {"shutil.move", "os.rename", "os.replace"}:
        source, place = needed(call, 0, "src"), needed(call, 1, "dst")
    elif is_path_method(api, "rename", "replace") and source is not None:
        place = needed(call, 0, "target")
    else:
        raise RefusalError(f"`{api.removeprefix('*.')}` is not known to move a file")
    scope = next((node for node in tree.ancestors(call) if isinstance(node, cst.FunctionDef)), tree.module)
    making = _making(target, scope, source, _HOPS)
    if making is None:
        raise RefusalError("cannot tell which `tempfile` call creates the path that is moved")
    if argument(making, _MAKING[_meaning(target, making)], "dir") is not None:
        raise RefusalError("the `tempfile` call already chooses its directory")
    for used in m.findall(place, m.Name()):
        if not _is_there(target, scope, cst.ensure_type(used, cst.Name).value, making):
            raise RefusalError("the destination is not known yet where the `tempfile` call runs")
    if not all(_is_plain(target, used) for used in m.findall(place, m.Call())):
        raise RefusalError("the destination could differ if it is evaluated twice")
    path, imports = spell(target, "os", "path", "import os")
    folder = cst.Call(cst.Attribute(path, cst.Name("dirname")), [cst.Arg(place.deep_clone())])
    beside = cst.BooleanOperation(folder, cst.Or(), cst.SimpleString('"."'))
    return Change(
        (TreeEdit(making, partial(with_keyword, added=named("dir", beside), newline=tree.newline)),), imports
    )


def _is_plain(target: Target, call: cst.CSTNode) -> bool:
    """Check whether a call only builds a path."""
    return _meaning(target, call) in {"os.path.join", "os.path.dirname", "os.fspath", "pathlib.Path"}


def _making(target: Target, scope: cst.CSTNode, source: cst.BaseExpression, hops: int) -> cst.Call | None:
    """Follow the variables in an expression back to a call of `tempfile`."""
    for call in m.findall(source, m.Call()):
        if isinstance(call, cst.Call) and _meaning(target, call) in _MAKING:
            return call
    if not hops:
        return None
    for name in m.findall(source, m.Name()):
        for value in _values(scope, cst.ensure_type(name, cst.Name).value):
            found = _making(target, scope, value, hops - 1)
            if found is not None:
                return found
    return None


def _meaning(target: Target, call: cst.CSTNode) -> str:
    return target.tree.names.meaning(cst.ensure_type(call, cst.Call).func) or ""


def _values(scope: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression]:
    """Yield the values that are assigned to a name, or bound to it by a `with`."""
    for assign in m.findall(scope, m.Assign()):
        targets = cst.ensure_type(assign, cst.Assign).targets
        if any(m.findall(each.target, m.Name(name)) for each in targets):
            yield cst.ensure_type(assign, cst.Assign).value
    for item in m.findall(scope, m.WithItem(asname=m.AsName(name=m.Name(name)))):
        yield cst.ensure_type(item, cst.WithItem).item


def _is_there(target: Target, scope: cst.CSTNode, name: str, making: cst.Call) -> bool:
    """Check whether a variable of the destination is bound before the `tempfile` call, and never later."""
    tree = target.tree
    bound = [
        node
        for node in m.findall(scope, m.AssignTarget() | m.AsName() | m.For() | m.NamedExpr() | m.AugAssign())
        if m.findall(_bound_by(node), m.Name(name))
    ]
    return all(tree.span(node) < tree.span(making) for node in bound)


def _bound_by(node: cst.CSTNode) -> cst.CSTNode:
    match node:
        case cst.AsName(name=bound):
            return bound
        case cst.AssignTarget(target=bound) | cst.For(target=bound) | cst.AugAssign(target=bound):
            return bound
        case cst.NamedExpr(target=bound):
            return bound
    return node
