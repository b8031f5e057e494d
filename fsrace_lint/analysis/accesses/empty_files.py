"""Calls that create empty files, which no reader can see half written, and files of literal text."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import suites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_WRITING: Final = frozenset({"write", "write_text"})
_PRINT: Final = m.Name("print")
_LINE: Final = m.Constant("\n")


def writes_nothing(call: m.Call) -> bool:
    """Return whether a call writes an empty text to a file, as in `path.write_text("")`."""
    empty = call.arguments[:1] == (m.Constant(""),)
    return empty and last_name(call.function) in _WRITING


def writes_literals(call: m.Call) -> bool:
    """Return whether a call writes literal text to a file, as in `path.write_text("done")`."""
    literal = all(isinstance(each, m.Constant) for each in call.arguments)
    return literal and last_name(call.function) in _WRITING


def left_empty(statements: Iterable[m.Statement]) -> Iterator[m.Call]:
    """Yield the calls that open a file to which nothing is written before it is closed.

    Args:
        statements: The statements of a function. Nested functions are not entered.
    """
    return _opened_for(tuple(statements), writes_nothing)


def left_as_markers(statements: Iterable[m.Statement]) -> Iterator[m.Call]:
    """Yield the calls that open a file to which only literal text is written: it only shows that it exists.

    Args:
        statements: The statements of a function. Nested functions are not entered.
    """
    return _opened_for(tuple(statements), writes_literals)


def _opened_for(body: tuple[m.Statement, ...], fits: Callable[[m.Call], bool]) -> Iterator[m.Call]:
    for statement, then in zip_longest(body, body[1:]):
        match statement:
            case m.Evaluate(value=m.Call(function=m.Attribute(value=m.Call() as opening, name="close"))):
                yield opening
            case m.Assign(targets=(m.Name() as file,), value=m.Call() as opening) if _closes(then, file):
                yield opening
            case m.With(items=(m.WithItem(context=m.Call() as opening, target=file),), body=inner):
                if all(_adds(each, file, fits) for each in inner):
                    yield opening
            case _:
                pass
        for suite in suites(statement):
            yield from _opened_for(suite, fits)


def _closes(statement: m.Statement | None, file: m.Expr) -> bool:
    called = statement.value if isinstance(statement, m.Evaluate) else None
    return isinstance(called, m.Call) and called.function == m.Attribute(file, "close")


def _adds(statement: m.Statement, file: m.Expr | None, fits: Callable[[m.Call], bool]) -> bool:
    """Return whether a statement is `file.close()`, or writes to the file as `fits` says."""
    called = statement.value if isinstance(statement, m.Evaluate) else None
    if not isinstance(called, m.Call) or file is None:
        return False
    if called.keywords == (m.Keyword("file", file),) and called.function == _PRINT:
        called = m.Call(m.Attribute(file, "write"), (_LINE, *called.arguments), (), called.span)
    owner = called.function
    if not isinstance(owner, m.Attribute) or owner.value != file:
        return False
    return owner.name == "close" or fits(called)
