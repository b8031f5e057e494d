"""What a call calls, and the path that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.fixes.tree import Tree

FOREIGN: Final = frozenset(
    (
        "anypath", "bucket", "cloudpathlib", "cloudpath", "dbutils", "epath", "filesystem", "fs", "fsspec",
        "ftp", "gcsfs", "gfile", "hadoop", "hdfs", "iopath", "path_manager", "pathmanager", "pathmgr",
        "g_pathmgr", "s3", "s3fs", "s3path", "sftp", "sftp_client", "shm", "smbclient", "ssh", "storage",
        "universal_pathlib", "upath",
    )
)  # fmt: skip
_ROOTS: Final = frozenset(("os", "pathlib", "shutil"))
_LIBRARIES: Final = _ROOTS | {
    "io", "joblib", "numpy", "safetensors", "tarfile", "tempfile", "torch", "urllib", "wget", "zipfile",
}  # fmt: skip
_WRAPPERS: Final = frozenset(("str", "os.fspath", "pathlib.Path", "pathlib.PurePath"))
_PUTTING: Final = frozenset(("absolute", "format", "joinpath", "resolve", "with_name", "with_suffix"))
_DOING: Final = m.Call() | m.Await() | m.Yield() | m.NamedExpr()
_PATH_KEYWORDS: Final = frozenset(("path", "name"))


def called(tree: Tree, call: cst.Call) -> str:
    """Name the library function that is called, `.method` for a method, or refuse."""
    function = call.func
    _refuse_foreign(tree, function)
    meaning = tree.names.meaning(function)
    if meaning is not None and meaning.partition(".")[0] in _LIBRARIES:
        return meaning
    match function:
        case cst.Name(value="open") if not (tree.names.knows("open") or tree.names.starred):
            return "open"
        case cst.Attribute(value=cst.Name(value=owner)) if owner in _ROOTS or tree.names.is_module(owner):
            pass
        case cst.Attribute(attr=attr):
            return f".{attr.value}"
        case cst.Name(value=name) if not tree.names.knows(name):
            starred = tree.names.starred & _ROOTS
            if len(starred) == 1:
                return f"{min(starred)}.{name}"
    raise RefusalError(f"{tree.module.code_for_node(function)} is not known to be what it looks like")


def is_pathlib_method(name: str, method: str) -> bool:
    """Tell whether `name` is a path's method, bound (`.mkdir`) or not (`pathlib.Path.mkdir`)."""
    return name == f".{method}" or (name.startswith("pathlib.") and name.endswith(f".{method}"))


def refuse_text_argument(name: str, call: cst.Call) -> None:
    """Refuse a method whose first argument is text, as in `sftp.mkdir("out")`: that is not pathlib."""
    texts = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)
    first = call.args[0] if call.args else None
    if (
        name.startswith(".")
        and first is not None
        and first.keyword is None
        and isinstance(first.value, texts)
    ):
        raise RefusalError("the path is an argument, so this is not pathlib")


def same_path(tree: Tree, check: cst.BaseExpression, call: cst.Call) -> bool:
    """Tell whether an existence test and a call spell the same path."""
    if not isinstance(check, cst.Call):
        return False
    paths = [_path_of(tree, check), _path_of(tree, call)]
    return None not in paths and len(set(paths)) == 1


def only_puts_together(tree: Tree, check: cst.Call) -> bool:
    """Tell whether a test may be left out: what gives its path does nothing but put it together."""
    function = check.func
    owner = function.value if isinstance(function, cst.Attribute) else function
    inner = [*m.findall(owner, _DOING), *(each for given in check.args for each in m.findall(given, _DOING))]
    return all(isinstance(each, cst.Call) and _puts_together(tree, each) for each in inner)


def _puts_together(tree: Tree, call: cst.Call) -> bool:
    function = call.func
    if (tree.names.meaning(function) or "").startswith(("os.path.", "os.fspath", "os.environ.", "pathlib.")):
        return True
    if isinstance(function, cst.Attribute):
        return function.attr.value in _PUTTING
    return isinstance(function, cst.Name) and function.value == "str" and not tree.names.knows("str")


def _path_of(tree: Tree, call: cst.Call) -> str | None:
    path: cst.BaseExpression
    function = call.func
    if isinstance(function, cst.Attribute) and _library_name(tree, function) is None:
        path = function.value
    elif call.args and not call.args[0].star:
        keyword = call.args[0].keyword
        if keyword is not None and keyword.value not in _PATH_KEYWORDS:
            return None
        path = call.args[0].value
    else:
        return None
    while isinstance(path, cst.Call) and len(path.args) == 1 and _is_wrapper(tree, path):
        path = path.args[0].value
    bare = path.with_changes(lpar=[], rpar=[])
    return tree.module.code_for_node(bare)


def _library_name(tree: Tree, function: cst.BaseExpression) -> str | None:
    meaning = tree.names.meaning(function)
    return meaning if meaning is not None and meaning.partition(".")[0] in _ROOTS else None


def _is_wrapper(tree: Tree, call: cst.Call) -> bool:
    if call.args[0].star or call.args[0].keyword is not None:
        return False
    if isinstance(call.func, cst.Name) and call.func.value == "str":
        return not tree.names.knows("str")
    return tree.names.meaning(call.func) in _WRAPPERS


def _refuse_foreign(tree: Tree, function: cst.BaseExpression) -> None:
    for node in _spine(function):
        own = node.value if isinstance(node, cst.Name) else node.attr.value
        for owner in [own, *(tree.names.meaning(node) or "").split(".")]:
            word = owner.lower().lstrip("_")
            if word in FOREIGN or word.endswith("_fs") or word.startswith("sftp"):
                raise RefusalError(f"{owner} may be another kind of filesystem, with other spellings")


def _spine(expression: cst.BaseExpression) -> Iterator[cst.Name | cst.Attribute]:
    while True:
        match expression:
            case cst.Name():
                yield expression
                return
            case cst.Attribute(value=inner):
                yield expression
            case cst.Call(func=inner) | cst.Subscript(value=inner) | cst.Await(expression=inner):
                pass
            case cst.BinaryOperation(left=inner):
                pass
            case _:
                return
        expression = inner
