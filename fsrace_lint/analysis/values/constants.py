"""The effect of constant arguments of a call on conditions in the callee."""

from __future__ import annotations

import operator as operators
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from fsrace_lint.analysis.values.abstract_values import (
    Argument,
    ConditionalValue,
    Expression,
    Looped,
    Union,
)
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.analysis.values.abstract_values import Binding, Environment
    from fsrace_lint.program.modules import LinkedFunction

Values: TypeAlias = "tuple[object, ...]"
"""All values that an expression can have, or nothing if they are not known."""

_DEEPEST: Final = 8
"""The maximum number of bindings through which a constant is followed."""
_COMPARED: Final[dict[str, Callable[[object, object], bool]]] = {
    "==": operators.eq,
    "!=": operators.ne,
    "is": operators.is_,
    "is not": operators.is_not,
}
"""The comparison operators on constants. `is` is meaningful for None, True, and False."""
_ORDERED: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
_MEMBERSHIP: Final = {"in": True, "not in": False}
"""The results of the operators for members."""
_COLLECTIONS: Final = (m.Name("frozenset"), m.Name("list"), m.Name("set"), m.Name("tuple"))


def constant_passed(expr: m.Expr, call: m.Call, callee: LinkedFunction) -> m.Constant | None:
    """Return the constant that a call passes for a parameter of the callee, or its constant default."""
    parameter = callee.parameters.get(expr.id) if isinstance(expr, m.Name) else None
    value = None if parameter is None else _passed(call, callee, parameter)
    return value if isinstance(value, m.Constant) else None


class ConstantReader:
    """Finds the constants that an expression can be, by the bindings of its function alone."""

    def passed(self, argument: Argument) -> Values:
        """Return the constants that callers pass for a parameter. Subclasses override this."""
        del argument
        return ()

    def attribute(self, expr: m.Attribute, scope: Environment) -> Values:
        """Return the constants of an attribute that the function itself does not set."""
        del expr, scope
        return ()

    def outcome(self, test: m.Expr, scope: Environment) -> bool | None:
        """Return the result of a condition, or None if constants do not determine it."""
        return outcome(test, lambda expr: self.values(expr, scope))

    def values(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Values:
        """Return the constants that an expression can be, or nothing if it can be anything else.

        Args:
            expr: The expression: a constant, a name, an attribute of `self`, or a choice of these.
            scope: The environment in which it is evaluated.
            depth: The number of bindings so far.
        """
        match expr:
            case m.Constant(value=value):
                return (value,)
            case m.Name(id=name):
                return self.of_binding(scope.get(name), depth)
            case m.Attribute(value=m.Name(id=owner), name=name):
                bound = scope.get(f"{owner}.{name}") if _is_set_only_in(scope.function, owner, name) else None
                return self.attribute(expr, scope) if bound is None else self.of_binding(bound, depth)
            case m.Conditional(test=test, body=body, orelse=orelse):
                sides = Expression(body, scope), Expression(orelse, scope)
                return self._chosen(Expression(test, scope), sides, depth)
            case _:
                return ()

    def of_binding(self, binding: Binding | None, depth: int = 0) -> Values:
        """Return the constants that a binding can be, or nothing if it can be anything else."""
        if depth > _DEEPEST:
            return ()
        match binding:
            case Argument():
                return self.passed(binding)
            case Expression(expr=expr, scope=scope):
                return self.values(expr, scope, depth + 1)
            case ConditionalValue(options=(body, orelse), test=test):
                return self._chosen(test, (body, orelse), depth)
            case Union(options=options):
                return all_values(self.of_binding(option, depth + 1) for option in options)
            case Looped(before=before, test=test):
                is_run = self.outcome(test.expr, test.scope)
                return self.of_binding(before, depth + 1) if is_run is False else ()
            case _:
                return ()

    def _chosen(self, test: Expression, sides: tuple[Binding, Binding], depth: int) -> Values:
        """Return the values of the side that a condition selects, or of both sides."""
        is_first = self.outcome(test.expr, test.scope)
        chosen = sides if is_first is None else sides[:1] if is_first else sides[1:]
        return all_values(self.of_binding(side, depth + 1) for side in chosen)


class TestedValues(Protocol):
    """The constants that variables can be after some tests."""

    def values(self, expr: m.Expr, /) -> Values:
        """Return the constants that a variable can be, or nothing."""


class _AtCall(ConstantReader):
    """Reads the parameters of a function as one call passes them."""

    def __init__(
        self, call: m.Call, scope: Environment, callee: LinkedFunction, tested: TestedValues | None
    ) -> None:
        self._call, self._scope, self._callee, self._tested = call, scope, callee, tested
        self.asked = False

    def passed(self, argument: Argument) -> Values:
        self.asked = True
        value = self._value(argument)
        return () if value is None else _TextReader().values(value, self._scope) or self._of_tested(value)

    def attribute(self, expr: m.Attribute, scope: Environment) -> Values:
        bound = scope.get(expr.value.id) if isinstance(expr.value, m.Name) else None
        is_set = isinstance(expr.value, m.Name) and scope.get(f"{expr.value.id}.{expr.name}") is not None
        is_own = isinstance(expr.value, m.Name) and is_object(self._callee, expr.value.id)
        value = self._value(bound) if isinstance(bound, Argument) and not (is_set or is_own) else None
        found = () if value is None else self._of_tested(m.Attribute(value, expr.name))
        self.asked = self.asked or bool(found)
        return found

    def _of_tested(self, expr: m.Expr) -> Values:
        return () if self._tested is None else self._tested.values(expr)

    def _value(self, argument: Argument) -> m.Expr | None:
        is_own = argument.function is self._callee
        return _passed(self._call, self._callee, argument.parameter) if is_own else None


class _Text:
    """A text that is not empty: true, and never None."""


_TEXT: Final = _Text()


class _TextReader(ConstantReader):
    """Reads constants, and texts that are only known in part."""

    def values(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Values:
        """Return the constants that an expression can be, `_TEXT`, or nothing if it can be anything else."""
        return super().values(expr, scope, depth) or ((_TEXT,) if _is_some_text(expr) else ())


def refutes(
    call: m.Call,
    outer: Environment,
    callee: LinkedFunction,
    test: Expression,
    tested: TestedValues | None,
    *,
    truth: bool,
) -> bool:
    """Return whether the constant arguments of a call rule out one result of a condition in the callee.

    Args:
        call: The call.
        outer: The environment of the call.
        callee: The function that it calls.
        test: The condition. Parameters that were rebound to other values are ignored.
        tested: The constants that arguments can be because of tests before the call.
        truth: The result to rule out.
    """
    reader = _AtCall(call, outer, callee, tested)
    result = reader.outcome(test.expr, test.scope)
    return reader.asked and result is (not truth)


def _passed(call: m.Call, callee: LinkedFunction, parameter: m.Parameter) -> m.Expr | None:
    """Return the argument of a call for a parameter, or a constant default."""
    value = bind(call, callee).argument_for(parameter)
    return parameter.default if value is None and isinstance(parameter.default, m.Constant) else value


def all_values(found: Iterable[Values]) -> Values:
    """Return the values of all alternatives, or nothing if those of one are not known."""
    alternatives = tuple(found)
    return tuple(value for values in alternatives for value in values) if all(alternatives) else ()


def _is_set_only_in(function: LinkedFunction, owner: str, name: str) -> bool:
    """Return whether `owner.name` is an attribute of the object of a method that no other method sets."""
    if not is_object(function, owner) or function.owner is None:
        return False
    setters = (method for each in function.owner.relatives for method in each.binding(name))
    return all(method is function for method in setters)


def is_object(function: LinkedFunction, name: str) -> bool:
    """Return whether a name is the first parameter of a method."""
    parameters = function.facts.parameters[:1] if function.takes_object else ()
    return any(parameter.name == name for parameter in parameters)


def outcome(test: m.Expr, values_of: Callable[[m.Expr], Values]) -> bool | None:
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
    operator: str, left: m.Expr, right: m.Expr, values_of: Callable[[m.Expr], Values]
) -> set[bool | None]:
    """Return the results of a comparison of constants, or of a test for membership in constants."""
    if isinstance(right, m.Call) and right.function in _COLLECTIONS and len(right.arguments) == 1:
        right = right.arguments[0]
    ones, others = _side(left, values_of), _side(right, values_of)
    return {_result(operator, one, other) for one in ones for other in others}


def _side(expr: m.Expr, values_of: Callable[[m.Expr], Values]) -> Values:
    """Return the values of one side of a comparison. A display of constants is one value."""
    match expr:
        case m.Constant(value=value):
            return (value,)
        case m.Sequence(items=items):
            constants = tuple(item.value for item in items if isinstance(item, m.Constant))
            return (constants,) if len(constants) == len(items) else ()
        case _:
            return values_of(expr)


def _is_some_text(expr: m.Expr) -> bool:
    """Return whether an expression is a text, or a path, that contains something for certain."""
    match expr:
        case m.Constant(value=str() as text):
            return text != ""
        case m.Format(parts=parts):
            return any(map(_is_some_text, parts))
        case m.Binary(operator="+", left=left, right=right):
            return _is_some_text(left) or _is_some_text(right)
        case m.Call(function=function, arguments=arguments) if (dotted(function) or "").endswith("path.join"):
            return any(map(_is_some_text, arguments))
        case _:
            return False


def _result(operator: str, one: object, other: object) -> bool | None:
    """Return the result of a comparison of two values, or None if it is not known."""
    if _TEXT in {one, other} and None not in {one, other}:
        return None
    if operator in _COMPARED:
        return _COMPARED[operator](one, other)
    if operator in _ORDERED and isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return _ORDERED[operator](one, other)
    is_text = isinstance(one, str) and isinstance(other, str)
    if operator in _MEMBERSHIP and (is_text or isinstance(other, tuple)):
        return (one in other) is _MEMBERSHIP[operator]  # type: ignore[operator]
    return None
