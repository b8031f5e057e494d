"""The function to call for a finding, and how a scenario imports it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.findings.finding import Finding

Function = ast.FunctionDef | ast.AsyncFunctionDef


class CannotReproduce(Exception):  # noqa: N818  # the message is for the user
    """No scenario can be written for a finding; the message says why."""


class Target(NamedTuple):
    """The function that a scenario calls.

    Attributes:
        file: The file that defines it, without symbolic links.
        tree: The syntax tree of the file.
        function: The function; None if the finding is in module code.
        owner: Its class, if it is a method.
        folder: The directory that must be in `sys.path`.
        module: The name by which it is imported from there.
    """

    file: Path
    tree: ast.Module
    function: Function | None
    owner: ast.ClassDef | None
    folder: Path
    module: str

    @property
    def name(self) -> str:
        """The qualified name of the function, or `<module>`."""
        if self.function is None:
            return "<module>"
        return f"{self.owner.name}.{self.function.name}" if self.owner is not None else self.function.name


def target_of(finding: Finding) -> Target:
    """Find the outermost function around a finding.

    Args:
        finding: The finding. Its path is relative to the current directory, or absolute.

    Returns:
        The function, or the module code.

    Raises:
        CannotReproduce: The file cannot be read.
    """
    file = Path(finding.place.path).resolve()
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise CannotReproduce(f"{finding.place.path} cannot be read: {error}") from None
    folder, module = _module_of(file, tree)
    line = finding.place.span.line
    for function, owner in functions(tree):
        if function.lineno <= line <= (function.end_lineno or line):
            return Target(file, tree, function, owner, folder, module)
    return Target(file, tree, None, None, folder, module)


def functions(tree: ast.Module) -> Iterator[tuple[Function, ast.ClassDef | None]]:
    """Yield the functions of a module and the methods of its classes."""
    for node in _statements(tree.body):
        if isinstance(node, Function):
            yield node, None
        elif isinstance(node, ast.ClassDef):
            yield from ((each, node) for each in _statements(node.body) if isinstance(each, Function))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, and those under `if`, `try`, and `with`."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody") if isinstance(node, ast.If | ast.Try | ast.With) else ():
            yield from _statements(getattr(node, part, []))
        for handler in node.handlers if isinstance(node, ast.Try) else ():
            yield from _statements(handler.body)


def _module_of(file: Path, tree: ast.Module) -> tuple[Path, str]:
    """Return the directory for `sys.path` and the name of a module; a package need not have `__init__.py`."""
    levels = max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    while folder.parent != folder and ((folder / "__init__.py").is_file() or len(parts) <= levels):
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)
