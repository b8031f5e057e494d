"""Expressions that make paths, by their syntax."""

from __future__ import annotations

from typing import Final

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

SAME_PATH: Final = frozenset(
    {
        "str", "os.fspath", "os.fsdecode", "os.path.abspath", "os.path.normpath", "os.path.realpath",
        "pathlib.Path.absolute", "pathlib.Path.resolve", "pathlib.Path.as_posix", "os.path.expanduser",
        "pathlib.Path.expanduser",
    }
)  # fmt: skip
_STRIPPING: Final = frozenset({"strip", "rstrip", "lstrip"})
"""Methods that remove slashes or whitespace from the ends of a path."""
_SEPARATORS: Final = (m.Constant("/"), m.Constant("\\"), m.Attribute(m.Name("os"), "sep"))
_CALCULATING: Final = frozenset({"-", "*", "//", "**"})
JOINING: Final = frozenset(
    {"os.path.join", "posixpath.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"}
)


def part_of_split(name: str, call: m.Call, index: object) -> tuple[str, m.Expr] | None:
    """Return which part of a path an item of a call result is.

    Args:
        name: The qualified name of the called function.
        call: The call, such as `os.path.split(path)` or `path.rsplit("/", 1)`.
        index: The index of the item.

    Returns:
        `parent` or `name`, and the path. None for other calls and items.
    """
    if name == "os.path.split" and len(call.arguments) == 1 and index in {0, 1, -1}:
        return "name" if index else "parent", call.arguments[0]
    method, separator = last_name(call.function), call.arguments[:1]
    if not isinstance(call.function, m.Attribute) or separator[:1] not in {(each,) for each in _SEPARATORS}:
        return None
    if index == -1 and method in {"split", "rsplit"}:
        return "name", call.function.value
    once = method == "rsplit" and index == 0 and call.arguments[1:] == (m.Constant(1),)
    return ("parent", call.function.value) if once else None


def keeps_the_path(method: str, arguments: tuple[m.Expr, ...]) -> bool:
    """Return whether a string method keeps the path: it only changes its ends or its separators."""
    if method in _STRIPPING:
        return arguments in {(), (m.Constant("/"),)}
    return method == "replace" and len(arguments) == 2 and all(each in _SEPARATORS for each in arguments)


def counts(operator: str, right: m.Expr) -> bool:
    """Return whether an operation is numeric, and not a concatenation of paths."""
    return operator in _CALCULATING or (isinstance(right, m.Constant) and isinstance(right.value, int))


def is_path_like(expr: m.Expr) -> bool:
    """Return whether the pieces of an expression are the pieces of a path."""
    return isinstance(
        expr, (m.Constant, m.Name, m.Attribute, m.Format, m.Binary, m.Boolean, m.Call, m.Walrus, m.Subscript)
    )
