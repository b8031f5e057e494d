"""What a call calls, and the path that it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.catalog.lexicon import meaning
from fsrace_lint.fixes.arguments import named_by
from fsrace_lint.fixes.recipe import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

_ROOTS: Final = frozenset(("os", "pathlib", "shutil"))
_TEXTS: Final = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)
_WRAPPERS: Final = frozenset(("str", "os.fspath", "pathlib.Path", "pathlib.PurePath"))
_PUTTING: Final = frozenset(("absolute", "format", "joinpath", "resolve", "with_name", "with_suffix"))
_DOING: Final = m.Call() | m.Await() | m.Yield() | m.NamedExpr()
_PATH_KEYWORDS: Final = frozenset(("path", "name"))


def api_of(target: Target) -> str:
    """Give the API that the call is known to call, by its name in the catalog.

    Raises:
        RefusalError: It is none, may be another one, or is a method that looks like one of something else.
    """
    api, call, tree = target.fix.api, target.call, target.tree
    said = tree.module.code_for_node(call.func)
    is_of_module = api.startswith("*.") and tree.names.is_module(said.partition(".")[0])
    if not api or is_of_module or not _says(tree, call.func, api):
        raise RefusalError(f"{said} is not known to be what it looks like")
    for word in _owners(tree, call.func) if api.startswith(("*.", "pathlib.")) else ():
        bare = word.lower().lstrip("_")
        if bare in meaning("filesystem") or bare.endswith("_fs") or bare.startswith("sftp"):
            raise RefusalError(f"{word} may be another kind of filesystem, with other spellings")
    first = call.args[0].value if call.args else None
    if (api == "*.mkdir" and isinstance(first, _TEXTS)) or (api == "*.rmdir" and first is not None):
        raise RefusalError("the path is an argument, so this is not pathlib")
    return api


def is_path_method(api: str, *methods: str) -> bool:
    """Tell whether an API is one of some methods of a path, known to be one (`pathlib.Path.mkdir`) or not."""
    owner, _, method = api.rpartition(".")
    return owner in {"*", "pathlib.Path"} and method in methods


def receiver(target: Target) -> cst.BaseExpression | None:
    """Give the path whose method is called; None where it is an argument, as in `Path.mkdir(path)`."""
    function = target.call.func
    is_bound = not (target.tree.names.meaning(function) or "").startswith("pathlib.")
    return function.value if is_bound and isinstance(function, cst.Attribute) else None


def written_path(target: Target) -> cst.BaseExpression:
    """Give the path of the one file that a call writes, where it can be given another one.

    Raises:
        RefusalError: It is not known to be given one.
    """
    api, effect = api_of(target), target.effect
    if effect is None or not effect.single_file:
        raise RefusalError(f"{api.removeprefix('*.')} is not known to write to the path that it is given")
    return named_by(target.call, effect.path)


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


def _says(tree: Tree, function: cst.BaseExpression, api: str) -> bool:
    """Tell whether a call is spelled as one of an API, not by a name that may stand for more than one."""
    last = api.rpartition(".")[2]
    match function:
        case cst.Attribute(attr=attr) if attr.value == last:
            return True
        case cst.Name(value=name) if name == last and not tree.names.knows(name):
            return api != name or not tree.names.starred
    return (tree.names.meaning(function) or "").rpartition(".")[2] == last


def _owners(tree: Tree, function: cst.BaseExpression) -> Iterator[str]:
    """Give the names that say whose method a call calls, and what they are imported as."""
    given = {name for argument in m.findall(function, m.Arg()) for name in m.findall(argument, m.Name())}
    for name in m.findall(function, m.Name()):
        if name not in given:
            word = cst.ensure_type(name, cst.Name).value
            yield word
            for binding in tree.names.imported.get(word, ()):
                yield from binding.meaning.split(".")


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
    library = (tree.names.meaning(function) or "").partition(".")[0]
    if isinstance(function, cst.Attribute) and library not in _ROOTS:
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


def _is_wrapper(tree: Tree, call: cst.Call) -> bool:
    if call.args[0].star or call.args[0].keyword is not None:
        return False
    if isinstance(call.func, cst.Name) and call.func.value == "str":
        return not tree.names.knows("str")
    return tree.names.meaning(call.func) in _WRAPPERS
