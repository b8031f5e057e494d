"""Paths through a callee that the arguments of a call rule out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.analysis.values.constants import refutes
from fsrace_lint.analysis.values.suffixes import ending, suffix_test
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import implied, unnegated
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.dataflow.abstract_state import AbstractState, CallSite, ExitPoint, PathCondition
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.analysis.values.constants import Values
    from fsrace_lint.program.modules import LinkedFunction

_NEGATED: Final = {"not in": "in", "is not": "is", "!=": "=="}


def is_infeasible(call_site: CallSite, callee: LinkedFunction, state: AbstractState) -> bool:
    """Return whether the arguments of a call rule out a state in the callee.

    The argument is a constant, a value that is tested before the call and again in the callee:
    `if fast: save(fast=fast)`, one of the constants that a test before the call names, or a path with a
    suffix that the callee tests.
    """
    otherwise = (
        _is_tested_otherwise(call_site, callee, literal) or _has_other_suffix(call_site, callee, literal)
        for literal in state.conditions
    )
    tested = Tested(call_site.state)
    return _is_refuted(call_site.call, call_site.state.scope, callee, state, tested) or any(otherwise)


class Tested(Record, frozen=True, eq=False):
    """The constants that variables can be after the tests in a state."""

    state: AbstractState

    def values(self, expr: m.Expr, /) -> Values:
        """Return the constants that a variable can be, or nothing.

        The tests are such as `assert split in ["train", "test"]`. An attribute that they compare with text is
        assumed to keep its value, unless the function itself sets it.
        """
        return _tested_values(expr, self.state)


def _tested_values(expr: m.Expr, state: AbstractState) -> Values:
    match expr:
        case m.Name(id=name):
            names = [name]
        case m.Attribute(value=m.Name(id=name), name=attribute):
            names = [name, f"{name}.{attribute}"]
        case _:
            return ()
    for literal in state.conditions if state.scope.get(names[0]) is not None else ():
        is_same = all(literal.scope.get(each) is state.scope.get(each) for each in names)
        if literal.attempt is None and is_same:
            found = _members(expr, literal.test, truth=literal.truth)
            if found and (len(names) == 1 or all(isinstance(each, str) for each in found)):
                return found
    return ()


def _members(expr: m.Expr, whole: m.Expr, *, truth: bool) -> Values:
    """Return the constants that an expression can equal after a test, or nothing."""
    for test, holds in implied(whole, truth=truth):
        match test:
            case m.Compare(
                left=left, operators=["in" | "not in" as operator], rights=[m.Sequence(items=items)]
            ):
                pass
            case m.Compare(left=left, operators=["==" | "!=" as operator], rights=[item]):
                items = (item,)
            case _:
                continue
        constants = tuple(each.value for each in items if isinstance(each, m.Constant))
        if left == expr and holds == (operator in {"in", "=="}) and len(constants) == len(items):
            return constants
    return ()


def is_impossible(state: AbstractState) -> bool:
    """Return whether a test in a state contradicts the suffix of a path that the function itself names."""
    outcomes = (
        suffix_test(each.test, each.scope, lambda _: "") is (not each.truth) for each in state.conditions
    )
    return any(outcomes)


def _has_other_suffix(call_site: CallSite, callee: LinkedFunction, literal: PathCondition) -> bool:
    """Return whether the suffix of an argument contradicts a test in the callee."""

    def passed(argument: Argument) -> str:
        value = bind(call_site.call, callee).argument_for(argument.parameter)
        if value is None or argument.function is not callee:
            return ""
        return ending(value, call_site.state.scope)

    return suffix_test(literal.test, literal.scope, passed) is (not literal.truth)


def _is_tested_otherwise(call_site: CallSite, callee: LinkedFunction, literal: PathCondition) -> bool:
    """Return whether a test before a call had the opposite outcome for the argument of a tested parameter."""
    test, truth = unnegated(literal.test, truth=literal.truth)
    bound = literal.scope.get(test.id) if isinstance(test, m.Name) else None
    if not isinstance(bound, Argument) or bound.function is not callee:
        return False
    value, scope = bind(call_site.call, callee).argument_for(bound.parameter), call_site.state.scope
    if not isinstance(value, m.Name):
        return False
    before = (
        unnegated(each.test, truth=each.truth)
        for each in call_site.state.conditions
        if each.scope.get(value.id) is scope.get(value.id)
    )
    return (value, not truth) in before


def alternatives_left(
    literal: PathCondition, call_site: CallSite, callee: LinkedFunction, state: AbstractState
) -> tuple[m.Expr, ...]:
    """Return the sides of an `or` before a call that a state in the callee allows; nothing if it allows all.

    In the callee, `if sharded: …; else: …` rules out one side of `if is_main or sharded:`.
    """
    test, truth = unnegated(literal.test, truth=literal.truth)
    if not isinstance(test, m.Boolean) or (test.operator == "or") != truth:
        return ()
    denied = [
        _affirmed(inner, truth=not holds)
        for each in state.conditions
        for inner, holds in implied(each.test, truth=each.truth)
        if _means_the_same(inner, each.scope, literal.scope, call_site, callee)
    ]
    left = tuple(side for side in test.values if _affirmed(side, truth=truth) not in denied)
    return left if len(left) < len(test.values) else ()


def _affirmed(test: m.Expr, *, truth: bool) -> tuple[m.Expr, bool]:
    """Return a test and its outcome without negations: `a in b` and False for `a not in b`."""
    test, truth = unnegated(test, truth=truth)
    match test:
        case m.Compare(left=left, operators=(operator,), rights=rights) if operator in _NEGATED:
            return m.Compare(left, (_NEGATED[operator],), rights), not truth
        case _:
            return test, truth


def _means_the_same(
    test: m.Expr, inside: Environment, outside: Environment, call_site: CallSite, callee: LinkedFunction
) -> bool:
    """Return whether a test in a callee has the value that it has before a call, by its names."""
    passed, scope = bind(call_site.call, callee), call_site.state.scope
    for name in (each for each in within(test) if isinstance(each, m.Name)):
        parameter, bound = callee.parameters.get(name.id), inside.get(name.id)
        if parameter is None and bound is None:
            continue
        is_passed = parameter is not None and passed.argument_for(parameter) == name
        if not is_passed or not isinstance(bound, Argument) or outside.get(name.id) != scope.get(name.id):
            return False
    return True


def feasible_exits(
    call: m.Call, scope: Environment, callee: LinkedFunction, ways: Iterable[ExitPoint]
) -> tuple[ExitPoint, ...]:
    """Return the exits of a callee that the constants in a call do not rule out."""
    return tuple(way for way in ways if not _is_refuted(call, scope, callee, way.state))


def _is_refuted(
    call: m.Call,
    scope: Environment,
    callee: LinkedFunction,
    state: AbstractState,
    tested: Tested | None = None,
) -> bool:
    tests = ((Expression(each.test, each.scope), each.truth) for each in state.conditions)
    return any(refutes(call, scope, callee, test, tested, truth=truth) for test, truth in tests)
