"""What a file binds to its names and attributes, as far as its text shows."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def called(call: ast.Call) -> str:
    """Return the last name of the function that a call calls, or an empty text."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


class FileBindings:
    """The assignments of a file that a line can see: those of its function, and of all attributes."""

    def __init__(self, module: ast.Module, line: int) -> None:
        """Store a parsed file, and the line that looks."""
        self._module = module
        self._line = line

    def around(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Yield the nodes of these kinds around the line, within its function."""
        for node in ast.walk(self._scope):
            if isinstance(node, kinds) and self._holds(node):
                yield node

    def calls(self) -> Iterator[ast.Call]:
        """Yield the calls in the function of the line, or in the file."""
        return (node for node in ast.walk(self._scope) if isinstance(node, ast.Call))

    def checks(self, asking: frozenset[str], acting: frozenset[str]) -> Iterator[ast.Call]:
        """Yield the calls of some functions in the file, except for `if` tests before only certain calls."""
        tests = {node for test in self._tests_before(acting) for node in ast.walk(test)}
        for node in ast.walk(self._module):
            if isinstance(node, ast.Call) and called(node) in asking and node not in tests:
                yield node

    def _tests_before(self, acting: frozenset[str]) -> Iterator[ast.expr]:
        for node in ast.walk(self._module):
            match node:
                case ast.If(test=test, body=[ast.Expr(value=ast.Call() as call)], orelse=[]):
                    if called(call) in acting:
                        yield test

    def bound(self, path: ast.expr) -> Iterator[ast.expr]:
        """Yield what is assigned to a name in this function, or to an attribute in this file."""
        said = ast.unparse(path)
        if isinstance(path, ast.Name):
            yield from self._names.get(said, ())
        elif isinstance(path, ast.Attribute):
            yield from self._attributes.get(said, ())

    def only_bound(self, path: ast.expr) -> list[ast.expr]:
        """Return what the file assigns to a name or attribute, or nothing if it can have another value."""
        said = ast.unparse(path)
        known = list(self.bound(path))
        nodes = list(ast.walk(self._module))
        kinds = ast.Name | ast.Attribute
        stored = [each for each in nodes if isinstance(each, kinds) and isinstance(each.ctx, ast.Store)]
        parameters = {each.arg for each in nodes if isinstance(each, ast.arg)}
        others = {getattr(each, "name", "") for each in nodes}
        is_sole = sum(ast.unparse(each) == said for each in stored) == len(known)
        return known if is_sole and said not in parameters | others else []

    def values(self, path: ast.expr, depth: int) -> Iterator[ast.expr]:
        """Yield an expression, and what is assigned to it."""
        yield path
        if depth:
            for each in self.bound(path):
                yield from self.values(each, depth - 1)

    @cached_property
    def _scope(self) -> ast.AST:
        functions = [node for node in ast.walk(self._module) if isinstance(node, _FUNCTIONS)]
        around = [node for node in functions if self._holds(node)]
        return max(around, key=lambda node: node.lineno, default=self._module)

    @cached_property
    def _names(self) -> dict[str, list[ast.expr]]:
        inner = _assigned(self._scope, ast.Name)
        outer = _assigned_at_top(self._module)
        return {**outer, **inner}

    @cached_property
    def _attributes(self) -> dict[str, list[ast.expr]]:
        found = _assigned(self._module, ast.Attribute)
        for node in ast.walk(self._module):
            match node:
                case ast.FunctionDef(name=name, body=[*_, ast.Return(value=ast.expr() as value)]):
                    if any(ast.unparse(each).endswith("property") for each in node.decorator_list):
                        found.setdefault(f"self.{name}", []).append(value)
        return found

    def _holds(self, node: ast.AST) -> bool:
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        return bool(first <= self._line <= last)


def _assigned(scope: ast.AST, kind: type[ast.expr]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(scope):
        for target, value in _pairs(node):
            if isinstance(target, kind):
                found.setdefault(ast.unparse(target), []).append(value)
    return found


def _assigned_at_top(module: ast.Module) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in module.body:
        for target, value in _pairs(node):
            found.setdefault(ast.unparse(target), []).append(value)
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.NamedExpr(target=target, value=value):
            yield target, value
