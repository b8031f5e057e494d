"""The syntax of loops: the tests that end them, and the calls in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    Expression,
    IterationElement,
    Looped,
    Union,
    Unknown,
)
from fsrace_lint.analysis.values.assignment import targets_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.traversal import all_in, evaluated, suites, target_name, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fsrace_lint.analysis.values.abstract_values import Binding, Environment

LoopStatement: TypeAlias = "m.While | m.For"
_FOLLOWED: Final = (Argument, Union, IterationElement, Expression)
"""The bindings that can be the start value of a counter."""


def loops_in(statements: Sequence[m.Statement]) -> Iterator[LoopStatement]:
    """Yield the loops in statements, outer loops first."""
    for statement in statements:
        if isinstance(statement, (m.While, m.For)):
            yield statement
        for suite in suites(statement):
            yield from loops_in(suite)


def calls_in(statements: Sequence[m.Statement]) -> Iterator[m.Call]:
    """Yield the calls in statements, except those in nested functions."""
    for statement in all_in(statements):
        for expr in evaluated(statement):
            yield from calls_of(expr)


def calls_of(expr: m.Expr | None) -> Iterator[m.Call]:
    """Yield the calls in an expression, outer calls first."""
    yield from (part for part in within(expr) if isinstance(part, m.Call))


def amid_rounds(loop: LoopStatement, scope: Environment) -> Environment:
    """Return the bindings in an arbitrary iteration of a loop; a counter is an element of a range."""
    bound = {name: scope.get(name) for name in loop.binds}
    rounds: dict[str, Binding] = {name: _changed(loop, binding, scope) for name, binding in bound.items()}
    if any(isinstance(binding, _FOLLOWED) for binding in bound.values()):
        for name, target in _counted_in(loop.body).items():
            if isinstance(bound.get(name), _FOLLOWED):
                call = m.Call(m.Name("range"), (target,), (), loop.span)
                rounds[name] = IterationElement(Expression(call, scope))
    return scope.bind(rounds)


def _changed(loop: LoopStatement, before: Binding | None, scope: Environment) -> Binding:
    """Return the binding of a name that a loop binds, in an arbitrary iteration and after the loop."""
    if before is None or isinstance(loop, m.For):
        return Unknown()
    return Looped(before=before, test=Expression(loop.test, scope))


def _counted_in(statements: Sequence[m.Statement]) -> dict[str, m.Expr]:
    """Return the targets that statements only increment or decrement, as `step += 1` does, by name."""
    counted: dict[str, m.Expr] = {}
    others: set[str] = set()
    for statement in all_in(statements):
        match statement:
            case m.Assign(
                targets=(target,),
                value=m.Binary(operator="+" | "-", left=left, right=m.Constant(value=int())),
            ) if left == target:
                counted[target_name(target) or ""] = target
            case m.Assign(targets=targets):
                others.update(name for target in targets for name in targets_of(target, Unknown()))
            case m.For(target=target):
                others.update(targets_of(target, Unknown()))
            case _:
                pass
    return {name: target for name, target in counted.items() if name not in others}


def ends_of(loop: LoopStatement) -> Iterator[tuple[m.Expr, bool]]:
    """Yield the tests that end a loop, each with the outcome that ends it."""
    if isinstance(loop, m.While):
        yield loop.test, False
    for statement in all_in(loop.body):
        if isinstance(statement, m.If):
            for suite, truth in ((statement.body, True), (statement.orelse, False)):
                if any(isinstance(inner, (m.Break, m.Return)) for inner in suite):
                    yield statement.test, truth


def tests_of(loop: m.While) -> Iterator[m.Expr]:
    """Yield all tests of a loop, including those that do not end it."""
    yield loop.test
    for statement in all_in(loop.body):
        if isinstance(statement, m.If):
            yield statement.test


def asked_by(loop: LoopStatement) -> Iterator[tuple[m.Call, bool]]:
    """Yield the calls whose results end a loop, each with the result that ends it, also by name."""
    for test, truth in ends_of(loop):
        yield from _asked(test, loop, truth=truth, named=False)


def _asked(test: m.Expr, loop: LoopStatement, *, truth: bool, named: bool) -> Iterator[tuple[m.Call, bool]]:
    match test:
        case m.Call():
            yield test, truth
            for argument in test.arguments:
                yield from ((call, True) for call in calls_of(argument))
        case m.Not(value=value):
            yield from _asked(value, loop, truth=not truth, named=named)
        case m.Boolean(values=values):
            for value in values:
                yield from _asked(value, loop, truth=truth, named=named)
        case m.Walrus(value=value):
            yield from _asked(value, loop, truth=truth, named=named)
        case m.Name(id=name) if not named:
            for statement in all_in(loop.body):
                if isinstance(statement, m.Assign) and m.Name(name) in statement.targets and statement.value:
                    yield from _asked(statement.value, loop, truth=truth, named=True)
        case m.Compare():
            yield from ((call, True) for call in calls_of(test))
        case _:
            return
