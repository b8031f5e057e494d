"""The modules of fsrace-lint, and their imports."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fsrace_lint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE: Final = Path(fsrace_lint.__file__).parent
NAME: Final = "fsrace_lint"


def modules() -> dict[str, Path]:
    """Return the modules by their names within fsrace_lint; a package has the name of its directory."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield every import as a full name, including imports in functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "we import by full names"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def our_module(name: str) -> str:
    """Return the module that an import loads: `syntax.model` for `fsrace_lint.syntax.model.Name`."""
    parts = name.split(".")[1:]
    while parts and ".".join(parts) not in MODULES:
        parts.pop()
    return ".".join(parts) or "__init__"


def reached(modules: Iterable[str]) -> set[str]:
    """Return the modules themselves and all modules that they import, directly or indirectly."""
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            names = imported(ast.parse(MODULES[module].read_text("utf-8")))
            waiting += [our_module(name) for name in names if name.partition(".")[0] == NAME]
    return found
