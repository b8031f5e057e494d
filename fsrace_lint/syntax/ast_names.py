"""Names in expressions, and parts of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def dotted(expr: m.Expr) -> str | None:
    """Return an expression as `a.b.c`, or None if it is not a chain of names."""
    if isinstance(expr, m.Name):
        return expr.id
    if isinstance(expr, m.Attribute):
        owner = dotted(expr.value)
        return None if owner is None else f"{owner}.{expr.name}"
    return None


def last_name(expr: m.Expr) -> str:
    """Return the last name of an expression: `c` for `a.b.c`, `a.b.c(…)`, and `a.b.c[…]`."""
    if isinstance(expr, m.Attribute):
        return expr.name
    if isinstance(expr, m.Name):
        return expr.id
    if isinstance(expr, m.Call):
        return last_name(expr.function)
    return last_name(expr.value) if isinstance(expr, m.Subscript) else ""


def calls_in(expr: m.Expr) -> Iterator[m.Call]:
    """Yield the calls that the value of an expression is computed from, outer calls before inner calls."""
    if isinstance(expr, m.Call):
        yield expr
    for part in parts(expr):
        yield from calls_in(part)


def unnegated(test: m.Expr, *, truth: bool) -> tuple[m.Expr, bool]:
    """Strip `not` from a test, and adjust its truth value."""
    while isinstance(test, m.Not):
        test, truth = test.value, not truth
    return test, truth


def implied(test: m.Expr, *, truth: bool) -> Iterator[tuple[m.Expr, bool]]:
    """Yield the parts of a test whose outcome is implied, each with its outcome."""
    match test:
        case m.Not(value=value):
            yield from implied(value, truth=not truth)
        case m.Boolean(operator=operator, values=values) if (operator == "and") == truth:
            for value in values:
                yield from implied(value, truth=truth)
        case _:
            yield test, truth


def setting_of(test: m.Expr) -> str:
    """Return the key of a setting that is read, as in `config["x"]` and `config.is_true("x")`."""
    match test:
        case m.Subscript(index=m.Constant(value=str(key))):
            return key
        case m.Call(function=m.Attribute(), arguments=(m.Constant(value=str(key)), *_)):
            return key
        case _:
            return ""


def only_result(body: Iterable[m.Statement]) -> m.Expr | None:
    """Return the returned expression if there is exactly one `return` outside of branches, else None."""
    results = [statement.value for statement in body if isinstance(statement, m.Return)]
    return results[0] if len(results) == 1 else None


def is_super(expr: m.Expr) -> bool:
    """Return whether an expression is `super()`."""
    return isinstance(expr, m.Call) and isinstance(expr.function, m.Name) and expr.function.id == "super"


def decorator_names(function: m.Function) -> Iterator[str]:
    """Yield the last part of the name of each decorator of a function, with or without arguments."""
    for decorator in function.decorators:
        yield last_name(decorator.function if isinstance(decorator, m.Call) else decorator)


def setting_role(function: m.Function) -> str:
    """Return `setter` or `deleter` if a function is that of a property, else an empty string."""
    for decorator in function.decorators:
        if isinstance(decorator, m.Attribute) and decorator.name in {"setter", "deleter"}:
            return decorator.name
    return ""


def parts(expr: m.Expr) -> tuple[m.Expr, ...]:  # one case per kind of expression
    """Return the expressions that a value is computed from; the test of a conditional is not one."""
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
    """Yield the last names of the functions and classes that an expression may denote.

    Yields:
        The name, whether the expression is the result of calling it, and the variable that owns it if it is
        an attribute (`?` if the owner is not a variable).
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
    """Return the variable that an expression reads, such as `x` or `self.x`; empty if there is none.

    Subscripts and calls are stripped: the variable of `x[0]` and `x.item()` is `x`.
    """
    while isinstance(expr, (m.Subscript, m.Call)):
        inner = expr.value if isinstance(expr, m.Subscript) else expr.function
        if isinstance(expr, m.Call) and isinstance(inner, m.Attribute):
            inner = inner.value
        expr = inner
    if isinstance(expr, m.Attribute) and isinstance(expr.value, m.Name):
        return f"{expr.value.id}.{expr.name}"
    return expr.id if isinstance(expr, m.Name) else ""


def as_attribute(expr: m.Expr) -> m.Expr:
    """Return `value.name` for `getattr(value, "name", …)`, and other expressions unchanged."""
    match expr:
        case m.Call(function=m.Name(id="getattr"), arguments=(value, m.Constant(value=str(name)), *_)):
            return m.Attribute(value, name)
        case _:
            return expr


def mapping_items(expr: m.Expr) -> dict[str, m.Expr]:
    """Return the values of a dictionary display by key, if all keys are strings; else nothing."""
    pieces = expr.parts if isinstance(expr, m.Opaque) else ()
    keys = [each.value for each in pieces[: len(pieces) // 2] if isinstance(each, m.Constant)]
    texts = [key for key in keys if isinstance(key, str)]
    return dict(zip(texts, pieces[len(texts) :], strict=True)) if len(pieces) == 2 * len(texts) else {}
