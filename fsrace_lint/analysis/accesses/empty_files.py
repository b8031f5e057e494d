"""Calls that create empty files, which no reader can see half written."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import suites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WRITING: Final = frozenset({"write", "write_text"})


def writes_nothing(call: m.Call) -> bool:
    """Return whether a call writes an empty text to a file, as in `path.write_text("")`."""
    empty = call.arguments[:1] == (m.Constant(""),)
    return empty and last_name(call.function) in _WRITING


def left_empty(statements: Iterable[m.Statement]) -> Iterator[m.Call]:
    """Yield the calls that open a file to which nothing is written before it is closed.

    Args:
        statements: The statements of a function. Nested functions are not entered.
    """
    body = tuple(statements)
    for statement, then in zip_longest(body, body[1:]):
        match statement:
            case m.Evaluate(value=m.Call(function=m.Attribute(value=m.Call() as opening, name="close"))):
                yield opening
            case m.Assign(targets=(m.Name() as file,), value=m.Call() as opening) if _closes(then, file):
                yield opening
            case m.With(items=(m.WithItem(context=m.Call() as opening, target=file),), body=inner):
                if all(_adds_nothing(each, file) for each in inner):
                    yield opening
            case _:
                pass
        for suite in suites(statement):
            yield from left_empty(suite)


def _closes(statement: m.Statement | None, file: m.Expr) -> bool:
    called = statement.value if isinstance(statement, m.Evaluate) else None
    return isinstance(called, m.Call) and called.function == m.Attribute(file, "close")


def _adds_nothing(statement: m.Statement, file: m.Expr | None) -> bool:
    """Return whether a statement is `file.write("")` or `file.close()`."""
    called = statement.value if isinstance(statement, m.Evaluate) else None
    owner = called.function if isinstance(called, m.Call) else None
    if not isinstance(called, m.Call) or not isinstance(owner, m.Attribute) or owner.value != file:
        return False
    return owner.name == "close" or writes_nothing(called)
