"""The part of the helpers that a project needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


def public(text: str) -> tuple[str, ...]:
    """Return the names of the helpers in a module, in the order of the file."""
    return tuple(
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    )


def used(module: str, helpers: Iterable[str], files: Iterable[Path]) -> frozenset[str]:
    """Return the helpers that files import from a module, or use as its attributes.

    Args:
        module: The last part of the name of the module.
        helpers: The names of all helpers.
        files: The files.
    """
    names: set[str] = set()
    for file in files:
        try:
            data = file.read_bytes()
            tree = ast.parse(data) if module.encode() in data else None
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue
        names.update(() if tree is None else _taken(tree, module))
    return frozenset(names.intersection(helpers))


def _taken(tree: ast.Module, module: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == module:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute) and module in ast.unparse(node.value).split("."):
            yield node.attr


def excerpt(text: str, names: Iterable[str]) -> str:
    """Return a module with only these functions, and what they need.

    Args:
        text: The module, without comments between its statements.
        names: The functions.
    """
    module = ast.parse(text)
    needed = _needed(module, names)
    listed = ast.unparse(
        ast.Assign([ast.Name("__all__")], ast.List([ast.Constant(name) for name in sorted(names)]), lineno=0)
    )
    return _Excerpt(text.splitlines(keepends=True), needed, listed.replace("'", '"')).of(module.body, 0)


class _Excerpt(NamedTuple):
    """The lines of a module, the names that are needed, and the line with the public ones."""

    lines: Sequence[str]
    needed: frozenset[str]
    listed: str

    def of(self, body: Sequence[ast.stmt], end: int) -> str:
        """Return the needed statements of a block, with the empty lines before each; `end` precedes it."""
        kept, space, is_listed = "", "", False
        for node in body:
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) - 1
            space = max(space, "".join(self.lines[end:first]), key=len)
            end = node.end_lineno or node.lineno
            said = self._said(node, "".join(self.lines[first:end]))
            if "__all__" in _bound(node):
                said, is_listed = "" if is_listed else f"{self.listed}\n", True
            if said:
                kept, space = kept + space + said, ""
        return kept

    def _said(self, node: ast.stmt, text: str) -> str:
        match node:
            case ast.Expr() | ast.ImportFrom(module="__future__"):
                return text
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                names = [
                    name for name in names if (name.asname or name.name.partition(".")[0]) in self.needed
                ]
                if not names:
                    return ""
                indent = " " * node.col_offset
                return (
                    f"{indent}{ast.unparse(_fewer(node, names))}\n" if len(names) < len(node.names) else text
                )
            case ast.If(body=body):
                inner = self.of(body, body[0].lineno - 1)
                return f"{self.lines[node.lineno - 1]}{inner}" if inner else ""
        return text if _bound(node) & self.needed else ""


def _fewer(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    """Return an import of fewer names."""
    return (
        ast.Import(names) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, names, node.level)
    )


def _bound(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement at the top of the module binds."""
    match node:
        case ast.FunctionDef(name=name):
            return frozenset({name})
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return frozenset({name})
    return frozenset()


def _needed(module: ast.Module, names: Iterable[str]) -> frozenset[str]:
    """Return the names that functions use, also through others, and those that the imports bind."""
    inner = [each for node in module.body if isinstance(node, ast.If) for each in node.body]
    uses = {
        name: {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        for node in [*module.body, *inner]
        for name in _bound(node)
    }
    found, waiting = set[str](), ["TYPE_CHECKING", *names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += uses.get(name, ())
    return frozenset(found)
