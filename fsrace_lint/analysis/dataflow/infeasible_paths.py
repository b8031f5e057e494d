"""Paths through a callee that the arguments of a call rule out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.analysis.values.constants import refutes
from fsrace_lint.analysis.values.suffixes import ending, suffix_test
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import unnegated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.dataflow.abstract_state import AbstractState, CallSite, ExitPoint, PathCondition
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction


def is_infeasible(call_site: CallSite, callee: LinkedFunction, state: AbstractState) -> bool:
    """Return whether the arguments of a call rule out a state in the callee.

    The argument is a constant, a value that is tested before the call and again in the callee:
    `if fast: save(fast=fast)`, or a path with a suffix that the callee tests.
    """
    otherwise = (
        _is_tested_otherwise(call_site, callee, literal) or _has_other_suffix(call_site, callee, literal)
        for literal in state.conditions
    )
    return _is_refuted(call_site.call, call_site.state.scope, callee, state) or any(otherwise)


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


def feasible_exits(
    call: m.Call, scope: Environment, callee: LinkedFunction, ways: Iterable[ExitPoint]
) -> tuple[ExitPoint, ...]:
    """Return the exits of a callee that the constants in a call do not rule out."""
    return tuple(way for way in ways if not _is_refuted(call, scope, callee, way.state))


def _is_refuted(call: m.Call, scope: Environment, callee: LinkedFunction, state: AbstractState) -> bool:
    tests = ((Expression(each.test, each.scope), each.truth) for each in state.conditions)
    return any(refutes(call, scope, callee, test, truth=truth) for test, truth in tests)
