"""What the names of one file mean, as far as its imports say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import libcst as cst
import msgspec
from libcst.helpers import get_full_name_for_node

if TYPE_CHECKING:
    from collections.abc import Iterable

Import: TypeAlias = cst.Import | cst.ImportFrom

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


class Binding(msgspec.Struct, frozen=True):
    """A name that an import statement binds, and what it then stands for."""

    meaning: str
    statement: Import


class Names(msgspec.Struct, frozen=True):
    """The imported names, the names bound in any other way, and the modules imported with a star."""

    imported: Mapping[str, tuple[Binding, ...]]
    bound: frozenset[str]
    starred: frozenset[str]

    @classmethod
    def of(cls, module: cst.Module) -> Names:
        """Collect the names of a module, in whatever scope they are bound."""
        collector = _Collector()
        module.visit(collector)
        imported = {name: tuple(bindings) for name, bindings in collector.imported.items()}
        return cls(imported, frozenset(collector.bound), frozenset(collector.starred))

    def meaning(self, expression: cst.BaseExpression) -> str | None:
        """Spell a dotted name in full, where the imports leave no doubt about it."""
        match expression:
            case cst.Attribute(value=value, attr=attr):
                owner = self.meaning(value)
                return None if owner is None else f"{owner}.{attr.value}"
            case cst.Name(value=name) if name not in self.bound:
                meanings = {binding.meaning for binding in self.imported.get(name, ())}
                return meanings.pop() if len(meanings) == 1 else None
        return None

    def is_module(self, name: str) -> bool:
        """Tell whether a plain `import` binds the name."""
        return any(isinstance(binding.statement, cst.Import) for binding in self.imported.get(name, ()))

    def knows(self, name: str) -> bool:
        """Tell whether anything in the file binds the name, stars aside."""
        return name in self.bound or name in self.imported


def count_bindings(scope: cst.CSTNode, name: str) -> int:
    """Count the places that bind a name within a node, in whatever scope."""
    collector = _Collector()
    scope.visit(collector)
    return collector.bound.count(name) + len(collector.imported.get(name, ()))


class _Collector(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.imported: dict[str, list[Binding]] = {}
        self.bound: list[str] = []
        self.starred: set[str] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Import):
            self._import(node, node.names, "")
            return False
        if isinstance(node, cst.ImportFrom):
            self._import_from(node)
            return False
        if isinstance(node, _TARGETS):
            self._bind(node.target)
        elif isinstance(node, _NAMED):
            self._bind(node.name)
        elif isinstance(node, cst.MatchMapping):
            self._bind(node.rest)
        return True

    def _import_from(self, node: cst.ImportFrom) -> None:
        module = "." * len(node.relative) + (get_full_name_for_node(node.module) or "" if node.module else "")
        if isinstance(node.names, cst.ImportStar):
            self.starred.add(module)
        else:
            self._import(node, node.names, module if module.endswith(".") else f"{module}.")

    def _import(self, statement: Import, aliases: Iterable[cst.ImportAlias], prefix: str) -> None:
        for alias in aliases:
            meaning = name = alias.evaluated_name
            if alias.asname is not None:
                name = alias.evaluated_alias or name
            elif isinstance(statement, cst.Import):
                meaning = name = name.partition(".")[0]
            self.imported.setdefault(name, []).append(Binding(prefix + meaning, statement))

    def _bind(self, target: cst.CSTNode | None) -> None:
        if isinstance(target, cst.Name):
            self.bound.append(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
