"""Tests of the suffix of a path whose last characters are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import constants_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.analysis.values.abstract_values import Environment

_KEEPING: Final = frozenset(
    {"Path", "abspath", "basename", "expanduser", "fspath", "join", "joinpath", "realpath", "resolve", "str"}
)
"""Functions and methods whose result ends with their last argument, or with their receiver."""
_OTHERS: Final = {"is_zipfile": (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"), "is_tarfile": (".zip",)}
"""For each test of an archive, suffixes of other archives."""
_DEEPEST: Final = 8


def suffix_test(test: m.Expr, scope: Environment, passed: Callable[[Argument], str]) -> bool | None:
    """Return the result of a test of the suffix of a path, or None if it is unknown or another test.

    Args:
        test: The test, such as `path.endswith(".zip")`, `path.suffix == ".zip"`, or `is_zipfile(path)`.
        scope: The environment of the test.
        passed: Returns the last characters of the argument for a parameter. Empty if unknown.
    """
    match test:
        case m.Not(value=value):
            outcome = suffix_test(value, scope, passed)
            return None if outcome is None else not outcome
        case m.Boolean(operator=operator, values=values):
            outcomes = {suffix_test(value, scope, passed) for value in values}
            decisive = operator == "or"
            return decisive if decisive in outcomes else None if None in outcomes else not decisive
        case m.Call(function=m.Attribute(value=path, name="endswith"), arguments=(given,)):
            return _ends_with(_end_of(path, scope, passed), _texts(given))
        case m.Call(function=function, arguments=(path,)) if last_name(function) in _OTHERS:
            return False if _end_of(path, scope, passed).endswith(_OTHERS[last_name(function)]) else None
        case m.Compare(
            left=m.Attribute(value=path, name="suffix")
            | m.Subscript(
                value=m.Call(function=m.Attribute(name="splitext"), arguments=(path,)),
                index=m.Constant(value=1 | -1),
            ),
            operators=(("==" | "in" | "!=" | "not in") as operator,),
            rights=(given,),
        ):
            end, texts = _end_of(path, scope, passed), _texts(given)
            if "." not in end or not texts:
                return None
            return (end[end.rindex(".") :] in texts) == (operator in {"==", "in"})
        case _:
            return None


def ending(expr: m.Expr, scope: Environment) -> str:
    """Return the last characters of a path or an address, as far as literals show them. Empty if unknown."""
    return _end_of(expr, scope, lambda _: "")


def _ends_with(end: str, texts: tuple[str, ...]) -> bool | None:
    if not end or not texts:
        return None
    unknown = any(text.endswith(end) for text in texts)
    return True if end.endswith(texts) else None if unknown else False


def _texts(given: m.Expr) -> tuple[str, ...]:
    """Return the values of a literal text, or of a literal sequence of texts."""
    items = given.items if isinstance(given, m.Sequence) else (given,)
    texts = [item.value for item in items if isinstance(item, m.Constant) and isinstance(item.value, str)]
    return tuple(texts) if len(texts) == len(items) else ()


def _end_of(expr: m.Expr, scope: Environment, passed: Callable[[Argument], str], depth: int = 0) -> str:
    match expr:
        case _ if depth > _DEEPEST:
            return ""
        case m.Constant(value=str() as text):
            return text
        case m.Format(parts=(*_, last)) | m.Binary(operator="+" | "/", right=last):
            return _end_of(last, scope, passed, depth + 1)
        case m.Call(function=m.Attribute(value=path, name="lower"), arguments=()):
            return _end_of(path, scope, passed, depth + 1).lower()
        case m.Call(function=function, arguments=(*_, last)) if last_name(function) in _KEEPING:
            return _end_of(last, scope, passed, depth + 1)
        case (
            m.Attribute(value=path, name="name")
            | m.Subscript(
                value=m.Call(
                    function=m.Attribute(value=path, name="split" | "rsplit"),
                    arguments=(m.Constant(value="/"), *_),
                ),
                index=m.Constant(value=-1),
            )
        ):
            return _end_of(path, scope, passed, depth + 1)
        case m.Name(id=name):
            bound = scope.get(name)
            if isinstance(bound, Argument):
                return passed(bound)
            if isinstance(bound, Expression):
                return _end_of(bound.expr, bound.scope, passed, depth + 1)
            module = scope.function.module.functions[0].facts
            constant = constants_in(module.body).get(name) if bound is None else None
            return "" if constant is None else str(constant.value)
        case _:
            return ""
