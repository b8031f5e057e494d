"""Find the oldest Python version that a file must run on, from the settings of the project and its code."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.catalog.lexicon import meaning
from fsrace_lint.fixes.reading import parsed
from fsrace_lint.fixes.settings_files import minors, table, toml, upwards

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Version: TypeAlias = tuple[int, int]

_PYTHON_2: Final = (2, 7)
_PYTHON_3: Final = (3, 0)
"""What `>=3` accepts, which says that Python 2 does not count, and no more."""
_BOUND: Final = re.compile(r"(>=|~=|===?|\^|~|>|!=|<=?)?\s*(\d+)(?:\.(\d+))?")
_LIMITS: Final = frozenset({"!=", "<", "<="})
_REQUIRED: Final = re.compile(
    r"(?i)(?:python_requires|requires_python)\w*\s*=\s*[\"']?\s*([<>=~!^\d][^\"'\n#]*)"
)
"""Matches the requirement in `setup.py`, also in a variable of that name, and in `setup.cfg`."""
_CLASSIFIER: Final = re.compile(r"Programming Language :: Python :: (\d+)(?:\.(\d+))?\b")
_FUTURES: Final = frozenset({"absolute_import", "division", "print_function", "unicode_literals"})
"""What only code for Python 2 imports from `__future__`."""
_SYNTAX: Final[Mapping[type[ast.AST], Version]] = {
    ast.AsyncFunctionDef: (3, 5),
    ast.JoinedStr: (3, 6),
    ast.AnnAssign: (3, 6),
    ast.NamedExpr: (3, 8),
    ast.Match: (3, 10),
}
_KEYWORDS: Final[Mapping[str | None, Version]] = {
    "missing_ok": (3, 8),
    "dirs_exist_ok": (3, 8),
}
_EARLY: Final = (3, 5)
"""The version that annotations show, and `os.makedirs(exist_ok=True)`, which backports do not have."""


def oldest(folder: Path, text: str) -> Version | None:
    """Return the oldest version of Python that a file must run on, or None if nothing shows it.

    A file that already uses syntax or parameters of a newer version does not run on an older one.

    Args:
        folder: The directory of the file.
        text: The file.
    """
    wanted = declared(folder)
    if wanted == _PYTHON_3:
        return None
    if wanted is not None and wanted >= max(_SYNTAX.values()):
        return wanted
    module = parsed(text)
    used = max(_used(module), default=_PYTHON_2)
    if wanted is None:
        return _PYTHON_2 if used == _PYTHON_2 and _is_for_python_2(module) else None
    return max(wanted, used)


def declared(folder: Path) -> Version | None:
    """Return the oldest version that the nearest settings above a directory declare, if they declare one."""
    for place in upwards(folder):
        found = _declared_in(place)
        if found is not None:
            return found
    return None


def lower_bound(text: str) -> Version | None:
    """Return the oldest version that a specifier such as `>=3.8,<4` or `^3.8` accepts, or None if unclear."""
    found = []
    for either in text.split("||"):
        parts = filter(None, (_BOUND.match(part.strip()) for part in either.split(",")))
        bounds = [_version(part[2], part[3]) for part in parts if part[1] not in _LIMITS]
        found += [max(bounds)] if bounds else []
    return min(found, default=None)


def _declared_in(place: Path) -> Version | None:
    """Return what is required, or else the first of the classifiers, or of the settings of black and ruff."""
    pyproject, setup, listed = (
        toml(place / "pyproject.toml"),
        _read(place / "setup.py"),
        _read(place / "setup.cfg"),
    )
    poetry, project = table(pyproject, "tool", "poetry", "dependencies"), table(pyproject, "project")
    required = [project.get("requires-python"), poetry.get("python"), *_REQUIRED.findall(setup + listed)]
    bounds = [lower_bound(text) for text in required if isinstance(text, str)]
    classified = _CLASSIFIER.findall(f"{project.get('classifiers')}{setup}{listed}")
    tools = (table(pyproject, "tool", name) for name in ("black", "ruff"))
    targets = [minor for tool in tools for minor in minors(tool.get("target-version"))]
    return min(
        [bound for bound in bounds if bound is not None]
        or [_version(major, minor) for major, minor in classified if minor or major == "2"]
        or [(3, minor) for minor in targets],
        default=None,
    )


def _version(major: str, minor: str) -> Version:
    return max((int(major), int(minor or 0)), _PYTHON_2)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _used(module: ast.Module) -> Iterator[Version]:
    """Yield the versions that the syntax and the parameters of a file need."""
    for node in ast.walk(module):
        if type(node) in _SYNTAX:
            yield _SYNTAX[type(node)]
        elif isinstance(node, ast.arg) and node.annotation is not None:
            yield _EARLY
        elif isinstance(node, ast.Call):
            keywords = [each.arg for each in node.keywords]
            yield from (_KEYWORDS[keyword] for keyword in keywords if keyword in _KEYWORDS)
            if "exist_ok" in keywords and ast.unparse(node.func) == "os.makedirs":
                yield _EARLY


def _is_for_python_2(module: ast.Module) -> bool:
    """Check whether the imports of a file are those of code for Python 2 and 3."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            if any(alias.name in _FUTURES for alias in node.names):
                return True
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and (node.module or "").partition(".")[0] in meaning("bridging"):
                return True
        elif isinstance(node, ast.Import) and any(
            alias.name.partition(".")[0] in meaning("bridging") for alias in node.names
        ):
            return True
    return False
