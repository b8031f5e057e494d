"""The effect of constant arguments of a call on conditions in the callee."""

from __future__ import annotations

import operator as operators
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import Argument
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.syntax import model as m

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_COMPARED: Final[dict[str, Callable[[object, object], bool]]] = {
    "==": operators.eq,
    "!=": operators.ne,
    "is": operators.is_,
    "is not": operators.is_not,
}
"""The comparison operators on constants. `is` is meaningful for None, True, and False."""


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
    outcome = _outcome(call, callee, test, scope)
    return outcome is not None and outcome != truth


def _outcome(call: m.Call, callee: LinkedFunction, test: m.Expr, scope: Environment) -> bool | None:
    """Return the result of a condition in the callee, or None if the constants do not determine it."""
    match test:
        case m.Not(value=value):
            inner = _outcome(call, callee, value, scope)
            return None if inner is None else not inner
        case m.Boolean(operator=operator, values=values):
            outcomes = [_outcome(call, callee, value, scope) for value in values]
            decisive = operator == "or"
            if decisive in outcomes:
                return decisive
            return None if None in outcomes else not decisive
        case m.Compare(left=left, operators=[operator], rights=[m.Constant(value=right)]):
            compared = _COMPARED.get(operator)
            constant = _kept(call, callee, left, scope)
            return None if compared is None or constant is None else compared(constant.value, right)
        case _:
            constant = _kept(call, callee, test, scope)
            return None if constant is None else bool(constant.value)


def _kept(call: m.Call, callee: LinkedFunction, expr: m.Expr, scope: Environment) -> m.Constant | None:
    """Return the constant that a call passes for a parameter, if the parameter was not rebound."""
    if not isinstance(expr, m.Name):
        return None
    bound = scope.get(expr.id)
    own = isinstance(bound, Argument) and bound.function is callee
    return constant_passed(expr, call, callee) if own else None
