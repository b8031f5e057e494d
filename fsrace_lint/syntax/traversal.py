"""Traversal of statements and expressions: suites, subexpressions, and bound names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def target_name(target: m.Expr) -> str | None:
    """Return the name that a target binds, such as `x` or `self.x`, or None."""
    if isinstance(target, m.Name):
        return target.id
    if isinstance(target, m.Attribute) and isinstance(target.value, m.Name):
        return f"{target.value.id}.{target.name}"
    return None


def bound_names(statements: Iterable[m.Statement], *, walrus: bool = True) -> tuple[str, ...]:
    """Return the names that some statements may bind, in order, without duplicates.

    Args:
        statements: The statements. Nested functions and classes are not entered.
        walrus: Whether the statements may contain `:=`. Searching for it visits all expressions.
    """
    names: dict[str, None] = {}
    for statement in statements:
        _collect(statement, names, walrus=walrus)
    return tuple(names)


def bound_in(function: m.Function) -> tuple[str, ...]:
    """Return the names that the code of a function may bind, in order, without duplicates."""
    return bound_names(function.body, walrus=function.has_walrus)


def _collect(statement: m.Statement, names: dict[str, None], *, walrus: bool) -> None:
    if isinstance(statement, (m.If, m.While, m.For, m.Try, m.With, m.Match)):
        names.update(dict.fromkeys(statement.binds))
        return
    if isinstance(statement, m.Assign):
        for target in statement.targets:
            names.update(dict.fromkeys(_names_in(target)))
    if walrus and not isinstance(statement, m.DefineClass):
        for expr in evaluated(statement):
            _collect_walrus(expr, names)


def _names_in(target: m.Expr) -> Iterator[str]:
    name = target_name(target)
    if name is not None:
        yield name
    elif isinstance(target, m.Sequence):
        for item in target.items:
            yield from _names_in(item)
    elif isinstance(target, m.Starred):
        yield from _names_in(target.value)


def constants_in(statements: Iterable[m.Statement], *, walrus: bool = True) -> dict[str, m.Constant]:
    """Return the constants that names have after some statements, on every way out of them.

    Args:
        statements: The statements, as for `bound_names`.
        walrus: As for `bound_names`.

    Returns:
        The constants by name, with attributes of variables as `x.name`. Names that are bound to anything
        else, in a branch, more than once, or after a possible `return` are left out.
    """
    found: dict[str, m.Constant | None] = {}
    may_be_left = False
    for statement in statements:
        constant = None
        if isinstance(statement, m.Assign) and len(statement.targets) == 1 and statement.annotation is None:
            is_one = target_name(statement.targets[0]) is not None and not may_be_left
            constant = statement.value if is_one and isinstance(statement.value, m.Constant) else None
        for name in bound_names([statement], walrus=walrus):
            found[name] = None if name in found else constant
        may_be_left = may_be_left or any(isinstance(each, m.Return) for each in all_in([statement]))
    return {name: constant for name, constant in found.items() if constant is not None}


def suites(statement: m.Statement) -> tuple[tuple[m.Statement, ...], ...]:
    """Return the suites of a compound statement, including class bodies and excluding function bodies."""
    find = _SUITES.get(type(statement))
    return () if find is None else find(statement)


def all_in(statements: Iterable[m.Statement]) -> Iterator[m.Statement]:
    """Yield some statements and all statements nested in them."""
    for statement in statements:
        yield statement
        for suite in suites(statement):
            yield from all_in(suite)


def evaluated(statement: m.Statement) -> tuple[m.Expr | None, ...]:
    """Return the expressions that a statement itself evaluates, outside of its suites."""
    match statement:
        case m.If(test=expr) | m.While(test=expr) | m.Assert(test=expr) | m.For(iterable=expr):
            return (expr,)
        case m.Evaluate(value=value) | m.Assign(value=value) | m.Return(value=value) | m.Raise(value=value):
            return (value,)
        case m.With(items=items):
            return tuple(item.context for item in items)
        case m.Match(subject=subject, cases=cases):
            return (subject, *(case.guard for case in cases))
        case _:
            return ()


def _collect_walrus(expr: m.Expr | None, names: dict[str, None]) -> None:
    if isinstance(expr, m.Walrus):
        names[expr.name] = None
    for child in () if expr is None else children(expr):
        _collect_walrus(child, names)


def children(expr: m.Expr) -> tuple[m.Expr, ...]:
    """Return the direct subexpressions of an expression."""
    find = _CHILDREN.get(type(expr))
    return () if find is None else find(expr)


def within(expr: m.Expr | None) -> Iterator[m.Expr]:
    """Yield an expression and all its subexpressions."""
    if expr is not None:
        yield expr
        for child in children(expr):
            yield from within(child)


def _of_branches(statement: m.If | m.While | m.For) -> tuple[tuple[m.Statement, ...], ...]:
    return statement.body, statement.orelse


def _of_try(statement: m.Try) -> tuple[tuple[m.Statement, ...], ...]:
    handlers = (handler.body for handler in statement.handlers)
    return (statement.body, *handlers, statement.orelse, statement.final)


_SUITES: Final[dict[type, Callable[..., tuple[tuple[m.Statement, ...], ...]]]] = {
    m.If: _of_branches,
    m.While: _of_branches,
    m.For: _of_branches,
    m.Try: _of_try,
    m.With: lambda statement: (statement.body,),
    m.DefineClass: lambda statement: (statement.body,),
    m.Match: lambda statement: tuple(case.body for case in statement.cases),
}


def _of_call(expr: m.Call) -> tuple[m.Expr, ...]:
    return (expr.function, *expr.arguments, *(keyword.value for keyword in expr.keywords))


def _of_comprehension(expr: m.Comprehension) -> tuple[m.Expr, ...]:
    inner = (part for generator in expr.generators for part in (generator.iterable, *generator.conditions))
    return (*inner, *expr.results)


_CHILDREN: Final[dict[type, Callable[..., tuple[m.Expr, ...]]]] = {
    m.Attribute: lambda expr: (expr.value,),
    m.Call: _of_call,
    m.Compare: lambda expr: (expr.left, *expr.rights),
    m.Boolean: lambda expr: expr.values,
    m.Not: lambda expr: (expr.value,),
    m.Binary: lambda expr: (expr.left, expr.right),
    m.Conditional: lambda expr: (expr.test, expr.body, expr.orelse),
    m.Format: lambda expr: expr.parts,
    m.Subscript: lambda expr: (expr.value, expr.index),
    m.Sequence: lambda expr: expr.items,
    m.Starred: lambda expr: (expr.value,),
    m.Comprehension: _of_comprehension,
    m.Walrus: lambda expr: (expr.value,),
    m.Yield: lambda expr: () if expr.value is None else (expr.value,),
    m.Opaque: lambda expr: expr.parts,
}
