"""What follows in a function from the constants that a call of it passes."""

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
"""How constants compare; `is` is asked of None, True and False, of each of which there is one."""


def constant_passed(expr: m.Expr, call: m.Call, callee: LinkedFunction) -> m.Constant | None:
    """Give the constant that a call passes where the function called reads a parameter of its own."""
    parameter = callee.parameters.get(expr.id) if isinstance(expr, m.Name) else None
    value = None if parameter is None else bind(call, callee).argument_for(parameter) or parameter.default
    return value if isinstance(value, m.Constant) else None


def refutes(call: m.Call, callee: LinkedFunction, test: m.Expr, scope: Environment, *, truth: bool) -> bool:
    """Tell whether a test in a function cannot come out one way, by the constants that a call passes.

    Args:
        call: The call.
        callee: The function called.
        test: The test in it.
        scope: The names there: a parameter that was bound anew tells nothing of what was passed.
        truth: How it would come out.

    Returns:
        Whether the call rules that out.
    """
    outcome = _outcome(call, callee, test, scope)
    return outcome is not None and outcome != truth


def _outcome(call: m.Call, callee: LinkedFunction, test: m.Expr, scope: Environment) -> bool | None:
    """Tell how a test comes out in the function called; None where the constants passed do not say it."""
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
    """Give the constant that a call passes for a parameter which still has it where it is read."""
    if not isinstance(expr, m.Name):
        return None
    bound = scope.get(expr.id)
    own = isinstance(bound, Argument) and bound.function is callee
    return constant_passed(expr, call, callee) if own else None
