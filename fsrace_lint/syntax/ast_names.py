"""Names and parts of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def dotted(expr: m.Expr) -> str | None:
    """Write `a.b.c` out, or give None where an expression is no such chain of names."""
    if isinstance(expr, m.Name):
        return expr.id
    if isinstance(expr, m.Attribute):
        owner = dotted(expr.value)
        return None if owner is None else f"{owner}.{expr.name}"
    return None


def last_name(expr: m.Expr) -> str:
    """Give the last name of what is called or read: `c` of `a.b.c`, `a.b.c(…)` and `a.b.c[…]`."""
    if isinstance(expr, m.Attribute):
        return expr.name
    if isinstance(expr, m.Name):
        return expr.id
    if isinstance(expr, m.Call):
        return last_name(expr.function)
    return last_name(expr.value) if isinstance(expr, m.Subscript) else ""


def unnegated(test: m.Expr, *, truth: bool) -> tuple[m.Expr, bool]:
    """Take the `not`s off a test, and say how it came out then."""
    while isinstance(test, m.Not):
        test, truth = test.value, not truth
    return test, truth


def only_result(body: Iterable[m.Statement]) -> m.Expr | None:
    """Give what a function returns where it does so in one place, which is in no branch."""
    results = [statement.value for statement in body if isinstance(statement, m.Return)]
    return results[0] if len(results) == 1 else None


def is_super(expr: m.Expr) -> bool:
    """Tell whether an expression is `super()`."""
    return isinstance(expr, m.Call) and isinstance(expr.function, m.Name) and expr.function.id == "super"


def setting_role(function: m.Function) -> str:
    """Tell what a function does to a property: `setter` or `deleter`; the empty text where it is no such."""
    for decorator in function.decorators:
        if isinstance(decorator, m.Attribute) and decorator.name in {"setter", "deleter"}:
            return decorator.name
    return ""


def parts(expr: m.Expr) -> tuple[m.Expr, ...]:  # one line a kind of expression
    """Give the expressions whose values an expression is made of; a test that only selects is none."""
    match expr:
        case m.Attribute(value=value) | m.Not(value=value) | m.Starred(value=value) | m.Walrus(value=value):
            return (value,)
        case m.Call(function=function, arguments=arguments, keywords=keywords):
            receiver = (function.value,) if isinstance(function, m.Attribute) else ()
            return (*receiver, *arguments, *(keyword.value for keyword in keywords))
        case m.Conditional(body=body, orelse=orelse):
            return body, orelse
        case m.Binary(left=left, right=right):
            return left, right
        case m.Compare(left=left, rights=rights):
            return (left, *rights)
        case m.Boolean(values=several) | m.Sequence(items=several):
            return several
        case m.Format(parts=several) | m.Opaque(parts=several):
            return several
        case m.Subscript(value=value, index=index):
            return value, index
        case _:
            return ()


def denoted(expr: m.Expr) -> Iterator[tuple[str, bool, str]]:
    """Give the last names of the functions and classes that an expression may denote.

    Yields:
        Each name, whether it is what a call of it gives, and for an attribute the variable that
        has it, or `?`.
    """
    match expr:
        case m.Name(id=name):
            yield name, False, ""
        case m.Attribute(value=value, name=name):
            yield name, False, value.id if isinstance(value, m.Name) else m.UNNAMED
        case m.Lambda(function=index):
            yield f"{m.LAMBDA}{index}", False, ""
        case m.Call(function=function):
            yield from ((name, True, of) for name, _, of in denoted(function))
        case m.Conditional(body=body, orelse=orelse):
            yield from denoted(body)
            yield from denoted(orelse)
        case m.Boolean(values=values):
            for value in values:
                yield from denoted(value)
        case m.Walrus(value=value) | m.Subscript(value=value):
            yield from denoted(value)
        case _:
            return


def variable_of(expr: m.Expr) -> str:
    """Name the variable that an expression reads: `x` of `x[0]` and `x.item()`, `self.x` of `self.x[0]`."""
    while isinstance(expr, (m.Subscript, m.Call)):
        inner = expr.value if isinstance(expr, m.Subscript) else expr.function
        if isinstance(expr, m.Call) and isinstance(inner, m.Attribute):
            inner = inner.value
        expr = inner
    if isinstance(expr, m.Attribute) and isinstance(expr.value, m.Name):
        return f"{expr.value.id}.{expr.name}"
    return expr.id if isinstance(expr, m.Name) else ""
