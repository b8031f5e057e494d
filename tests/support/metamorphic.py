"""Changes that preserve the behavior of programs: layout, names, files, and surrounding code."""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Files = dict[str, str]
Change = "Callable[[Files], Files | None]"

SUFFIX: Final = "_renamed"
WHOLE: Final = "whole_program"
HELPERS: Final = "moved_helpers"
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _of_text(change: Callable[[str], str | None]) -> Callable[[Files], Files | None]:
    """Apply a change to each file; the result is None if any file cannot be changed."""

    def changed(files: Files) -> Files | None:
        found = {path: change(text) for path, text in files.items()}
        return (
            {path: text for path, text in found.items() if text is not None} if all(found.values()) else None
        )

    return changed


def unparsed(text: str) -> str | None:
    """Normalize the layout of a program with `ast.unparse`."""
    return ast.unparse(ast.parse(text)) + "\n"


def commented(text: str) -> str | None:
    """Insert a comment and an empty line before each statement that begins a line."""
    lines = text.split("\n")
    starts = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(each.lineno for each in decorators)])
            indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
            if len(indent.encode()) == node.col_offset or decorators:
                starts.add(first)
    inside = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        for line in range(token.start[0] + 1, token.end[0] + 1)
        if token.type in {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    }
    found = []
    for number, line in enumerate(lines, 1):
        # `elif` is a separate statement only in the syntax tree
        if number in starts - inside and not line.lstrip().startswith("elif"):
            indent = line[: len(line) - len(line.lstrip())]
            found += [f"{indent}# a remark", ""]
        found.append(line)
    return "\n".join(found)


def with_unrelated(text: str) -> str | None:
    """Add a function that is never called."""
    return f"{text}\n\ndef nothing_of_the_kind(first, second):\n    return first + second\n"


def annotated(text: str) -> str | None:
    """Annotate each parameter and each result with `object`."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            node.returns = node.returns or ast.Constant("object")
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            for each in given:
                if each.annotation is None and each.arg not in {"self", "cls"}:
                    each.annotation = ast.Constant("object")
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _body(tree: ast.Module) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Split a module into the statements that must be first and the rest."""
    at = 0
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (is_text or is_future):
            break
        at += 1
    return tree.body[:at], tree.body[at:]


def _around(make: Callable[[list[ast.stmt]], list[ast.stmt]]) -> Callable[[str], str | None]:
    def changed(text: str) -> str | None:
        tree = ast.parse(text)
        first, rest = _body(tree)
        if not rest:
            return text
        tree.body = [*first, *make(rest)]
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"

    return changed


def _in_if(body: list[ast.stmt]) -> list[ast.stmt]:
    return [ast.If(ast.Constant(value=True), body, [])]


def _in_try(body: list[ast.stmt]) -> list[ast.stmt]:
    return [ast.Try(body, [], [], [ast.Pass()])]


def in_function(files: Files) -> Files | None:
    """Move a whole program into a function and call it, if it has one file that allows this."""
    if len(files) != 1:
        return None
    ((path, text),) = files.items()
    tree = ast.parse(text)
    stars = any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree))
    if stars or any(isinstance(n, ast.Global) for n in ast.walk(tree)) or "__name__" in text:
        return None
    first, rest = _body(tree)
    whole = ast.parse(f"def {WHOLE}():\n    pass\n{WHOLE}()\n").body
    whole[0].body = rest or [ast.Pass()]  # type: ignore[attr-defined]
    tree.body = [*first, *whole]
    return {path: ast.unparse(ast.fix_missing_locations(tree)) + "\n"}


def renamed(files: Files) -> Files | None:
    """Rename local variables and parameters of functions, except names that calls pass as keywords."""
    keywords = {
        word.arg
        for text in files.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for word in node.keywords
    }
    found = {path: _renamed(text, keywords) for path, text in files.items()}
    return found if found != {path: unparsed(text) for path, text in files.items()} else None


MEANING: Final = re.compile(
    r"rank|main|master|leader|world|size|node|worker|proc|index|gpu|device|group|tmp|temp"
)
"""Names that the analysis uses as evidence, so a new name can change the result."""


def _renamed(text: str, keywords: set[str | None]) -> str:
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, _FUNCTIONS)]
    functions += [
        node
        for around in tree.body
        if isinstance(around, ast.ClassDef)
        for node in around.body
        if isinstance(node, _FUNCTIONS)
    ]
    for function in functions:
        _rename_in(function, keywords)
    return ast.unparse(tree) + "\n"


def _rename_in(function: ast.FunctionDef | ast.AsyncFunctionDef, keywords: set[str | None]) -> None:
    nodes = list(ast.walk(function))
    if any(isinstance(n, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)) for n in nodes if n is not function):
        return
    outside = {name for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    imported = {
        (a.asname or a.name).split(".")[0]
        for n in nodes
        if isinstance(n, (ast.Import, ast.ImportFrom))
        for a in n.names
    }
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    given = {a.arg for a in [*function.args.posonlyargs, *function.args.args]}
    names = {
        name
        for name in (bound | given) - outside - imported - keywords - {"self", "cls"}
        if not MEANING.search(name.lower())
    }
    for node in nodes:
        for key in ("id", "arg", "name"):
            if not isinstance(node, (*_FUNCTIONS, ast.alias)) and getattr(node, key, None) in names:
                setattr(node, key, getattr(node, key) + SUFFIX)


def _free(function: ast.AST) -> set[str]:
    """Return the names that a function uses from its module, possibly too many but never too few."""
    nodes = list(ast.walk(function))
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.name for n in nodes if isinstance(n, (ast.ExceptHandler, *_FUNCTIONS)) and n.name}
    bound |= {
        (a.asname or a.name).split(".")[0]
        for n in nodes
        if isinstance(n, (ast.Import, ast.ImportFrom))
        for a in n.names
    }
    used = {n.id for n in nodes if isinstance(n, ast.Name)}
    return used - bound - set(dir(builtins))


def _split(*, by_module: bool) -> Callable[[Files], Files | None]:
    """Move functions of a program to another module, and import the functions or the module."""

    def changed(files: Files) -> Files | None:
        if len(files) != 1:
            return None
        ((path, text),) = files.items()
        if (
            "/" in path
            or path == "__init__.py"
            or any(isinstance(n, ast.Global) for n in ast.walk(ast.parse(text)))
        ):
            return None
        tree = ast.parse(text)
        imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
        known = {(a.asname or a.name).split(".")[0] for n in imports for a in n.names}
        moved = [n for n in tree.body if isinstance(n, _FUNCTIONS)]
        names = Counter(n.name for n in moved)
        while True:
            there = {n.name for n in moved}
            fit = [n for n in moved if names[n.name] == 1 and _free(n) <= known | there]
            if len(fit) == len(moved):
                break
            moved = fit
        called = {
            n.id for each in tree.body if each not in moved for n in ast.walk(each) if isinstance(n, ast.Name)
        }
        if not moved or not called & there:
            return None
        home = ast.unparse(ast.Module([*imports, *moved], []))
        rest = ast.Module([n for n in tree.body if n not in moved and n not in imports], [])
        future = [n for n in imports if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
        others = [n for n in imports if n not in future]
        if by_module:
            rest = _Prefixed(there).visit(rest)
            line = f"import {HELPERS} as moved"
        else:
            line = f"from {HELPERS} import {', '.join(sorted(there))}"
        first, body = _body(rest)
        main = ast.Module([*first, *future, *others, *ast.parse(line).body, *body], [])
        return {path: ast.unparse(ast.fix_missing_locations(main)) + "\n", f"{HELPERS}.py": f"{home}\n"}

    return changed


class _Prefixed(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.names and isinstance(node.ctx, ast.Load):
            return ast.Attribute(ast.Name("moved", ast.Load()), node.id, ast.Load())
        return node


CHANGES: Final[Mapping[str, Callable[[Files], Files | None]]] = {
    "unparsed": _of_text(unparsed),
    "commented": _of_text(commented),
    "with an unrelated function": _of_text(with_unrelated),
    "annotated": _of_text(annotated),
    "in if True": _of_text(_around(_in_if)),
    "in try and finally": _of_text(_around(_in_try)),
    "in a function": in_function,
    "renamed": renamed,
    "split, names imported": _split(by_module=False),
    "split, the module imported": _split(by_module=True),
}
