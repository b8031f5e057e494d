"""Node-local storage: directories, environment variables, and calls that name a path on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.analysis.ranks.rank_tests import RankTests
    from fsrace_lint.analysis.values.abstract_values import Environment


class NodeLocal:
    """Finds node-local paths by name."""

    def __init__(self, rank_tests: RankTests) -> None:
        """Initialize with the rank checks of a project."""
        self.rank_tests = rank_tests
        self.resolver = rank_tests.resolver
        self.catalog = rank_tests.catalog
        self._folders = [
            name.rstrip("/").split("/") for name in self.catalog.names("node-local") if name.startswith("/")
        ]

    def place(self, expr: m.Expr, scope: Environment) -> str | None:
        """Return the node-local location that an environment variable or a call gives, or None."""
        variable = self.rank_tests.environment_variable(expr, scope)
        name = f"${variable}" if variable is not None else None
        if name is None and isinstance(expr, m.Call):
            name = self.resolver.qualify(expr.function, scope)
        return name if name is not None and self.catalog.exact("node-local", name) is not None else None

    def holds(self, path: AbstractPath | None) -> bool:
        """Return whether a path is node-local."""
        if path is None:
            return False
        return self.names(path) or any(symbol.is_on_node for symbol in path.variables())

    def names(self, path: AbstractPath) -> bool:
        """Return whether a path itself names a node-local directory, and not a function that returns it."""
        return any(symbol.local for symbol in path.variables()) or self.folder(path) > 0

    def folder(self, path: AbstractPath) -> int:
        """Return the number of leading components of a path that name a node-local directory."""
        literal = [
            "".join(piece for piece in component if isinstance(piece, str)) for component in path.components
        ]
        return max((len(folder) for folder in self._folders if literal[: len(folder)] == folder), default=0)
