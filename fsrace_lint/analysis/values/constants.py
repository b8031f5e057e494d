"""The effect of constant arguments of a call on conditions in the callee."""

from __future__ import annotations

import operator as operators
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import Argument
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_COMPARED: Final[dict[str, Callable[[object, object], bool]]] = {
    "==": operators.eq,
    "!=": operators.ne,
    "is": operators.is_,
    "is not": operators.is_not,
}
"""The comparison operators on constants. `is` is meaningful for None, True, and False."""
_MEMBERSHIP: Final = {"in": True, "not in": False}
"""The results of the operators for members."""


def constant_passed(expr: m.Expr, call: m.Call, callee: LinkedFunction) -> m.Constant | None:
    """Return the constant that a call passes for a parameter of the callee, or its constant default."""
    parameter = callee.parameters.get(expr.id) if isinstance(expr, m.Name) else None
    value = None if parameter is None else bind(call, callee).argument_for(parameter) or parameter.default
    return value if isinstance(value, m.Constant) else None


def refutes(call: m.Call, callee: LinkedFunction, test: m.Expr, scope: Environment, *, truth: bool) -> bool:
    """Return whether the constant arguments of a call rule out one result of a condition.

    Args:
        call: The call.
        callee: The function that it calls.
        test: The condition in the callee.
        scope: The environment of the condition. Parameters that were rebound are ignored.
        truth: The result to rule out.
    """

    def values_of(expr: m.Expr) -> tuple[object, ...]:
        constant = _kept(call, callee, expr, scope)
        return () if constant is None else (constant.value,)

    return outcome(test, values_of) is (not truth)


def outcome(test: m.Expr, values_of: Callable[[m.Expr], Collection[object]]) -> bool | None:
    """Return the result of a condition, or None if the values of its parts do not determine it.

    Args:
        test: The condition.
        values_of: Returns all constants that an expression can be, or nothing if they are not known.
    """
    match test:
        case m.Not(value=value):
            inner = outcome(value, values_of)
            return None if inner is None else not inner
        case m.Boolean(operator=operator, values=values):
            outcomes = [outcome(value, values_of) for value in values]
            decisive = operator == "or"
            if decisive in outcomes:
                return decisive
            return None if None in outcomes else not decisive
        case m.Compare(left=left, operators=[operator], rights=[right]):
            results = _compared(operator, left, right, values_of)
        case _:
            results = {bool(value) for value in values_of(test)}
    return results.pop() if len(results) == 1 else None


def _compared(
    operator: str, left: m.Expr, right: m.Expr, values_of: Callable[[m.Expr], Collection[object]]
) -> set[bool]:
    """Return the results of a comparison with a constant, or of a test for membership in constants."""
    match right:
        case m.Constant(value=other) if operator in _COMPARED:
            return {_COMPARED[operator](value, other) for value in values_of(left)}
        case m.Sequence(items=items) if operator in _MEMBERSHIP:
            others = [item.value for item in items if isinstance(item, m.Constant)]
            known = len(others) == len(items)
            return {(value in others) is _MEMBERSHIP[operator] for value in values_of(left) if known}
        case _:
            return set()


def _kept(call: m.Call, callee: LinkedFunction, expr: m.Expr, scope: Environment) -> m.Constant | None:
    """Return the constant that a call passes for a parameter, if the parameter was not rebound."""
    if not isinstance(expr, m.Name):
        return None
    bound = scope.get(expr.id)
    own = isinstance(bound, Argument) and bound.function is callee
    return constant_passed(expr, call, callee) if own else None
