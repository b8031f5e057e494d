"""Where archives lie, and which other archives are extracted into the same directory."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from fsrace_lint.fixes.bindings import FileBindings, called
from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import libcst as cst

    from fsrace_lint.fixes.recipe import Target

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_EXTRACTING: Final = frozenset({"extract", "extractall", "unpack_archive"})
_JOINING: Final = frozenset(
    {"Path", "PurePath", "abspath", "expanduser", "fspath", "join", "realpath", "str"}
)
_HERE: Final = frozenset({".", "os.curdir", "os.getcwd()", "Path.cwd()", "pathlib.Path.cwd()"})
_DEPTH: Final = 4
"""Maximum number of names to look up for one path."""


def refuse_shared_directory(
    target: Target, archive: cst.BaseExpression, directory: cst.BaseExpression
) -> None:
    """Refuse a directory that is not only for the content of one archive.

    `extract_once()` takes a directory that is not empty for a complete one, and replaces it as a whole.

    Raises:
        RefusalError: The archive lies in the directory, or other archives are extracted there too.
    """
    tree = target.tree
    code = tree.module.code_for_node
    source, goal = _parsed(code(archive)), _parsed(code(directory))
    bindings = FileBindings(ast.parse(tree.text), tree.span(target.call).line)
    for loop in bindings.around(*_LOOPS):
        if not _varies(goal, loop):
            raise RefusalError("the loop extracts multiple archives into the same directory")
    goals = {ast.unparse(each) for each in bindings.values(goal, _DEPTH)}
    calls = [each for each in bindings.calls() if called(each) in _EXTRACTING]
    if sum(bool(goals & set(_arguments(bindings, call))) for call in calls) > 1:
        raise RefusalError("another archive is extracted into the same directory")
    sources = list(bindings.values(source, _DEPTH))
    if any(_lies_in(bindings, each, goal) for each in sources):
        raise RefusalError("the archive may be inside the directory, which then is never empty")


def _parsed(code: str) -> ast.expr:
    return ast.parse(f"({code.strip()}\n)", mode="eval").body


def _varies(goal: ast.expr, loop: ast.AST) -> bool:
    """Check whether the directory depends on a name that the loop binds."""
    bound = {ast.unparse(node) for node in ast.walk(loop) if _is_stored(node)}
    used = [node for node in ast.walk(goal) if isinstance(node, ast.Name | ast.Attribute)]
    return any(ast.unparse(node) in bound for node in used)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)


def _arguments(bindings: FileBindings, call: ast.Call) -> Iterator[str]:
    for given in [*call.args, *(each.value for each in call.keywords)]:
        for value in bindings.values(given, _DEPTH):
            yield ast.unparse(value)


def _lies_in(bindings: FileBindings, archive: ast.expr, goal: ast.expr) -> bool:
    inner = _parts(bindings, archive, _DEPTH)
    for each in bindings.values(goal, _DEPTH):
        outer = _parts(bindings, each, _DEPTH)
        if outer == [f"dirname({part})" for part in inner] or outer == inner[: len(outer)]:
            return True
        if len(outer) == 1 and outer[0] in _HERE and inner[0] != "/":
            return True
        said = ast.unparse(each)
        is_opaque = isinstance(archive, ast.Call) and inner == [ast.unparse(archive)]
        if is_opaque and any(ast.unparse(node) == said for node in ast.walk(archive)):
            return True  # such as `download(url, path=root)`
    return False


def _parts(bindings: FileBindings, path: ast.expr, depth: int) -> list[str]:
    """Return the components of a path as far as the code shows them."""
    match path:
        case ast.Constant(value=str(text)):
            return [*(["/"] if text[:1] == "/" else []), *_split(text)] or ["."]
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return [*_parts(bindings, left, depth), *_parts(bindings, right, depth)]
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=str(text))) if text[:1] == "/":
            return [*_parts(bindings, left, depth), *_split(text)]
        case ast.JoinedStr(values=[ast.FormattedValue(value=first), ast.Constant(value=str(text)), *others]):
            if text[:1] == "/":
                rest = "".join(ast.unparse(ast.JoinedStr([each])) for each in others)
                return [*_parts(bindings, first, depth), *_split(text + rest)]
        case ast.Attribute(value=value, attr="parent"):
            return _above(_parts(bindings, value, depth))
        case ast.Call(func=ast.Attribute(value=owner, attr="joinpath" | "resolve" | "absolute"), args=args):
            return [part for each in (owner, *args) for part in _parts(bindings, each, depth)]
        case ast.Call(func=function, args=[first, *others]):
            name = ast.unparse(function).rpartition(".")[2]
            if name == "dirname":
                return _above(_parts(bindings, first, depth))
            if name in _JOINING:
                return [part for each in (first, *others) for part in _parts(bindings, each, depth)]
    known = list(bindings.bound(path)) if depth else []
    return _parts(bindings, known[0], depth - 1) if len(known) == 1 else [ast.unparse(path)]


def _split(text: str) -> list[str]:
    return [part for part in text.split("/") if part]


def _above(parts: list[str]) -> list[str]:
    return parts[:-1] if len(parts) > 1 else [f"dirname({parts[0]})"]
