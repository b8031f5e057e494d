"""The function that a call calls, and the path that it uses."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

import libcst as cst
from libcst import matchers as m

from fsrace_lint.catalog.lexicon import meaning
from fsrace_lint.fixes.arguments import named_by
from fsrace_lint.fixes.bindings import FileBindings
from fsrace_lint.fixes.recipe import RefusalError
from fsrace_lint.fixes.text import ending_of, is_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.fixes.recipe import Target
    from fsrace_lint.fixes.tree import Tree

_TEXTS: Final = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)
_PUTTING: Final = frozenset(("absolute", "format", "joinpath", "resolve", "with_name", "with_suffix"))
_DOING: Final = m.Call() | m.Await() | m.Yield() | m.NamedExpr()


def api_of(target: Target) -> str:
    """Return the API that the call calls, by its name in the library models.

    Raises:
        RefusalError: The function is unknown or ambiguous, or may be a method of another library.
    """
    api, call, tree = target.fix.api, target.call, target.tree
    said = tree.module.code_for_node(call.func)
    is_of_module = api.startswith("*.") and tree.names.is_module(said.partition(".")[0])
    is_named = _says(tree, call.func, api) or _is_bound_to(tree, call, api)
    if not api or is_of_module or not is_named:
        raise RefusalError(f"`{said}` could be a different function than its name suggests")
    for word in _owners(tree, call.func) if api.startswith(("*.", "pathlib.")) else ():
        bare = word.lower().lstrip("_")
        if bare in meaning("filesystem") or bare.endswith("_fs") or bare.startswith("sftp"):
            raise RefusalError(f"`{word}` could be a different kind of filesystem with a different API")
    first = call.args[0].value if call.args else None
    if (api == "*.mkdir" and isinstance(first, _TEXTS)) or (api == "*.rmdir" and first is not None):
        raise RefusalError("the path is an argument, so this is not a `pathlib` method")
    return api


def is_path_method(api: str, *methods: str) -> bool:
    """Check whether an API is one of these methods of a path, as in `pathlib.Path.mkdir` or `*.mkdir`."""
    owner, _, method = api.rpartition(".")
    return owner in {"*", "pathlib.Path"} and method in methods


def refuse_foreign(target: Target, path: cst.BaseExpression) -> None:
    """Refuse a path object that may be of another library, whose files are not renamed in the same way.

    Raises:
        RefusalError: The file imports such a library, and the path is not clearly a `pathlib` one.
    """
    names = target.tree.names
    if is_path(target.tree, path):
        return
    for binding in (each for bindings in names.imported.values() for each in bindings):
        foreign = meaning("filesystem").intersection(binding.meaning.lower().split("."))
        if foreign:
            said = target.tree.module.code_for_node(path)
            raise RefusalError(f"`{said}` may be a path of `{binding.meaning}`, with a different API")


def receiver(target: Target) -> cst.BaseExpression | None:
    """Return the path whose method is called, or None if it is an argument, as in `Path.mkdir(path)`."""
    function = target.call.func
    is_bound = not (target.tree.names.meaning(function) or "").startswith("pathlib.")
    return function.value if is_bound and isinstance(function, cst.Attribute) else None


def written_path(target: Target) -> cst.BaseExpression:
    """Return the path argument of a call that writes a single file. A copy to a name with a suffix is one.

    Raises:
        RefusalError: The call is not known to write a single file at the given path.
    """
    api, effect = api_of(target), target.effect
    path = None if effect is None else named_by(target.call, effect.path)
    if effect is not None and path is not None:
        is_copied = effect.op == "copy" and not effect.tree and bool(ending_of(target.tree, path))
        if effect.single_file or is_copied:
            return path
    raise RefusalError(
        f"`{api.removeprefix('*.')}` is not known to write a single file at the path that it is given"
    )


def only_puts_together(tree: Tree, check: cst.Call) -> bool:
    """Check whether a test can be removed, because computing its path has no side effects."""
    function = check.func
    owner = function.value if isinstance(function, cst.Attribute) else function
    inner = [*m.findall(owner, _DOING), *(each for given in check.args for each in m.findall(given, _DOING))]
    return all(isinstance(each, cst.Call) and _puts_together(tree, each) for each in inner)


def _says(tree: Tree, function: cst.BaseExpression, api: str) -> bool:
    """Check whether the code names the API itself, rather than a variable that may be another function."""
    last = api.rpartition(".")[2]
    match function:
        case cst.Attribute(attr=attr) if attr.value == last:
            return True
        case cst.Name(value=name) if name == last and not tree.names.knows(name):
            return api != name or not tree.names.starred
    return (tree.names.meaning(function) or "").rpartition(".")[2] == last


def _is_bound_to(tree: Tree, call: cst.Call, api: str) -> bool:
    """Check whether the file assigns this API, and nothing else, to the name or attribute of a call."""
    said = tree.module.code_for_node(call.func).strip()
    if not said.removeprefix("self.").isidentifier():
        return False
    bindings = FileBindings(ast.parse(tree.text), tree.span(call).line)
    values = bindings.only_bound(ast.parse(said, mode="eval").body)
    meanings = {tree.names.meaning(cst.parse_expression(ast.unparse(value))) for value in values}
    return meanings == {api}


def _owners(tree: Tree, function: cst.BaseExpression) -> Iterator[str]:
    """Yield the names that the method is called on, and the modules that they come from."""
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
