"""What the names in one file refer to, according to its imports."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import libcst as cst
import msgspec
from libcst.helpers import get_full_name_for_node

from fsrace_lint.files.spans import Span
from fsrace_lint.fixes.nodes import within

ImportStatement: TypeAlias = cst.Import | cst.ImportFrom

_TARGETS: Final = (
    cst.AssignTarget,
    cst.AnnAssign,
    cst.AugAssign,
    cst.NamedExpr,
    cst.For,
    cst.CompFor,
    cst.Del,
)
_NAMED: Final = (
    cst.AsName,
    cst.ClassDef,
    cst.FunctionDef,
    cst.MatchAs,
    cst.MatchStar,
    cst.Param,
    cst.ParamSpec,
    cst.TypeAlias,
    cst.TypeVar,
    cst.TypeVarTuple,
)


class ImportPosition(msgspec.Struct, frozen=True):
    """The position and the scopes of an import statement."""

    span: Span
    scopes: tuple[tuple[int, int], ...]
    """The line and the column where each function and class around it begins, from the inside out."""
    is_top: bool
    """Whether it is a line of the file itself."""


class ImportBinding(msgspec.Struct, frozen=True):
    """A name that an import statement binds, and what it refers to."""

    meaning: str
    is_plain: bool
    """Whether the statement begins with `import`."""
    standing: ImportPosition


class ImportedNames(msgspec.Struct, frozen=True):
    """Imported names, names bound in any other way, and star imports."""

    imported: Mapping[str, tuple[ImportBinding, ...]]
    bound: frozenset[str]
    starred: frozenset[str]

    @classmethod
    def of(cls, module: cst.Module, standing: Callable[[ImportStatement], ImportPosition]) -> ImportedNames:
        """Collect the names of a module that are bound in any scope.

        Args:
            module: The module.
            standing: Returns the position of an import statement.
        """
        found = _Collected(module)
        imported = {
            name: tuple(
                ImportBinding(meaning, isinstance(statement, cst.Import), standing(statement))
                for meaning, statement in bindings
            )
            for name, bindings in found.imported.items()
        }
        return cls(imported, frozenset(found.bound), frozenset(found.starred))

    @classmethod
    def joined(cls, parts: Iterable[ImportedNames]) -> ImportedNames:
        """Combine the names of the parts of a file, in order."""
        imported = collections.defaultdict[str, tuple[ImportBinding, ...]](tuple)
        bound, starred = set[str](), set[str]()
        for part in parts:
            for name, bindings in part.imported.items():
                imported[name] += bindings
            bound |= part.bound
            starred |= part.starred
        return cls(dict(imported), frozenset(bound), frozenset(starred))

    def meaning(self, expression: cst.BaseExpression) -> str | None:
        """Return the full dotted name of an expression, or None if the imports leave it ambiguous."""
        match expression:
            case cst.Attribute(value=value, attr=attr):
                owner = self.meaning(value)
                return None if owner is None else f"{owner}.{attr.value}"
            case cst.Name(value=name) if name not in self.bound:
                meanings = {binding.meaning for binding in self.imported.get(name, ())}
                return meanings.pop() if len(meanings) == 1 else None
        return None

    def is_module(self, name: str) -> bool:
        """Check whether a plain `import` binds the name."""
        return any(binding.is_plain for binding in self.imported.get(name, ()))

    def knows(self, name: str) -> bool:
        """Check whether the file binds the name, except by a star import."""
        return name in self.bound or name in self.imported


def count_bindings(scope: cst.CSTNode, name: str) -> int:
    """Count the places in a node that bind a name, in any scope."""
    found = _Collected(scope)
    return found.bound.count(name) + len(found.imported.get(name, ()))


class _Collected:
    """The names bound in a node, and its imports with their meaning and statement.

    A method binds no name that code outside of the body of its class can read.
    """

    def __init__(self, scope: cst.CSTNode) -> None:
        self._methods: set[cst.CSTNode] = set()
        self.imported: dict[str, list[tuple[str, ImportStatement]]] = {}
        self.bound: list[str] = []
        self.starred: set[str] = set()
        for node in within(scope, cst.Import, cst.ImportFrom):
            self._collect(node)

    def _collect(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Import):
            self._import(node, node.names, "")
        elif isinstance(node, cst.ImportFrom):
            self._import_from(node)
        elif isinstance(node, _TARGETS):
            self._bind(node.target)
        elif isinstance(node, _NAMED):
            if isinstance(node, cst.ClassDef):
                self._methods.update(node.body.body)
            if node not in self._methods:
                self._bind(node.name)
        elif isinstance(node, cst.MatchMapping):
            self._bind(node.rest)

    def _import_from(self, node: cst.ImportFrom) -> None:
        module = "." * len(node.relative) + (get_full_name_for_node(node.module) or "" if node.module else "")
        if isinstance(node.names, cst.ImportStar):
            self.starred.add(module)
        else:
            self._import(node, node.names, module if module.endswith(".") else f"{module}.")

    def _import(self, statement: ImportStatement, aliases: Iterable[cst.ImportAlias], prefix: str) -> None:
        for alias in aliases:
            meaning = name = alias.evaluated_name
            if alias.asname is not None:
                name = alias.evaluated_alias or name
            elif isinstance(statement, cst.Import):
                meaning = name = name.partition(".")[0]
            self.imported.setdefault(name, []).append((prefix + meaning, statement))

    def _bind(self, target: cst.CSTNode | None) -> None:
        if isinstance(target, cst.Name):
            self.bound.append(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
