"""Loops as they are written: what ends them, and what they call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    Expression,
    IterationElement,
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
"""What may be a number to count on from."""


def loops_in(statements: Sequence[m.Statement]) -> Iterator[LoopStatement]:
    """Give the loops among some statements, an outer one before those in it."""
    for statement in statements:
        if isinstance(statement, (m.While, m.For)):
            yield statement
        for suite in suites(statement):
            yield from loops_in(suite)


def calls_in(statements: Sequence[m.Statement]) -> Iterator[m.Call]:
    """Give the calls among some statements; functions defined there are not entered."""
    for statement in all_in(statements):
        for expr in evaluated(statement):
            yield from calls_of(expr)


def calls_of(expr: m.Expr | None) -> Iterator[m.Call]:
    """Give the calls that an expression is written with, the outer one first."""
    yield from (part for part in within(expr) if isinstance(part, m.Call))


def amid_rounds(loop: LoopStatement, scope: Environment) -> Environment:
    """Give the names as they stand in some round of a loop: what it counts is one of a range of numbers."""
    bound = {name: scope.get(name) for name in loop.binds}
    rounds: dict[str, Binding] = dict.fromkeys(loop.binds, Unknown())
    if any(isinstance(binding, _FOLLOWED) for binding in bound.values()):
        for name, target in _counted_in(loop.body).items():
            if isinstance(bound.get(name), _FOLLOWED):
                call = m.Call(m.Name("range"), (target,), (), loop.span)
                rounds[name] = IterationElement(Expression(call, scope))
    return scope.bind(rounds)


def _counted_in(statements: Sequence[m.Statement]) -> dict[str, m.Expr]:
    """Give the targets that some statements only count up or down, as `step += 1` does, by their names."""
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
    """Give the tests that end a loop, and how each of them comes out then."""
    if isinstance(loop, m.While):
        yield loop.test, False
    for statement in all_in(loop.body):
        if isinstance(statement, m.If):
            for suite, truth in ((statement.body, True), (statement.orelse, False)):
                if any(isinstance(inner, (m.Break, m.Return)) for inner in suite):
                    yield statement.test, truth


def tests_of(loop: m.While) -> Iterator[m.Expr]:
    """Give all tests of a loop, also those that end it with an exception."""
    yield loop.test
    for statement in all_in(loop.body):
        if isinstance(statement, m.If):
            yield statement.test


def asked_by(loop: LoopStatement) -> Iterator[tuple[m.Call, bool]]:
    """Give the calls whose results end a loop, and how they come out then, also by a name in the loop."""
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
