"""What lies on a node's own disk: folders, and what the environment or a call names there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.analysis.values.abstract_values import Environment


class NodeLocal:
    """Tells what each node has for itself, as far as names tell."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Prepare for a project whose rank tests are read with `rank_tests`."""
        self.rank_tests = rank_tests
        self.resolver = rank_tests.resolver
        self.catalog = rank_tests.catalog
        self._folders = [
            name.rstrip("/").split("/") for name in self.catalog.names("node-local") if name.startswith("/")
        ]

    def place(self, expr: m.Expr, scope: Environment) -> str | None:
        """Name the place on the node's own disk that an environment variable or a call gives."""
        variable = self.rank_tests.environment_variable(expr, scope)
        name = f"${variable}" if variable is not None else None
        if name is None and isinstance(expr, m.Call):
            name = self.resolver.qualify(expr.function, scope)
        return name if name is not None and self.catalog.exact("node-local", name) is not None else None

    def holds(self, path: AbstractPath | None) -> bool:
        """Tell whether each node has a path of its own under this name."""
        if path is None:
            return False
        return any(symbol.local for symbol in path.variables()) or self.folder(path) > 0

    def folder(self, path: AbstractPath) -> int:
        """Count the components at the beginning of a path that name a folder on the node's own disk."""
        literal = [
            "".join(piece for piece in component if isinstance(piece, str)) for component in path.components
        ]
        return max((len(folder) for folder in self._folders if literal[: len(folder)] == folder), default=0)
