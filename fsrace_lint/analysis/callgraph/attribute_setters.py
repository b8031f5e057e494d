"""Finds code that may set an attribute of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.loops import calls_in
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import all_in, bound_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.values.constants import Values
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction
    from fsrace_lint.program.relevance import Relevance

_SETTING: Final = m.Name("setattr")
_ATTRIBUTES: Final = "__dict__"
_ATTRIBUTES_OF: Final = m.Name("vars")
_CHANGING: Final = frozenset({"clear", "pop", "popitem", "setdefault", "update"})
"""The methods that change a dictionary."""


def may_set_any(function: LinkedFunction, name: str) -> bool:
    """Return whether code sets attributes by names that it does not spell out, and one can be `name`.

    A dictionary of attributes that is only read sets none.
    """
    names = function.facts.referenced_names
    if (_ATTRIBUTES in names or _ATTRIBUTES_OF.id in names) and _changes_dictionary(function):
        return True
    calls = calls_in(function.facts.body) if _SETTING.id in names else ()
    spelled = (call.arguments[1:2] for call in calls if call.function == _SETTING)
    return any(
        not (each and isinstance(each[0], m.Constant)) or each[0] == m.Constant(name) for each in spelled
    )


def sets(function: LinkedFunction, name: str) -> bool:
    """Return whether code sets an attribute of another object than its own."""
    own = {parameter.name for parameter in function.facts.parameters[:1] if function.takes_object}
    owners = (each.rpartition(".")[0] for each in bound_in(function.facts) if each.endswith(f".{name}"))
    return any(owner not in own for owner in owners)


def constants_set(relevance: Relevance, attribute: m.Attribute) -> Values:
    """Return the constants that the code of the project assigns to an attribute of any object.

    The result is empty if there is another assignment, or none. `setattr()` counts if its object has the same
    name, or if it is in a class that assigns the attribute.
    """
    name, owner = attribute.name, last_name(attribute.value)
    found: list[object] = []
    owners: set[LinkedClass | None] = set()
    for function in relevance.using([name]):
        for value in _assigned(function, name):
            if not isinstance(value, m.Constant):
                return ()
            found.append(value.value)
            owners.add(function.owner)
    for function in relevance.using([_SETTING.id]) if found else ():
        calls = (call for call in calls_in(function.facts.body) if call.function == _SETTING)
        is_own = function.owner is not None and function.owner in owners
        is_meant = is_own or any(last_name(each) == owner for call in calls for each in call.arguments[:1])
        if is_meant and may_set_any(function, name):
            return ()
    return tuple(found)


def _assigned(function: LinkedFunction, name: str) -> Iterator[m.Expr | None]:
    """Yield the values that code assigns to attributes of a name. An unpacked one is None."""
    for statement in all_in(function.facts.body):
        for target in statement.targets if isinstance(statement, m.Assign) else ():
            for part in within(target):
                if isinstance(part, m.Attribute) and part.name == name:
                    yield statement.value if part is target and isinstance(statement, m.Assign) else None


def _changes_dictionary(function: LinkedFunction) -> bool:
    """Return whether code changes the dictionary of the attributes of an object, or names it."""
    for statement in all_in(function.facts.body):
        written = (statement.value, *statement.targets) if isinstance(statement, m.Assign) else ()
        if any(map(_is_in_dictionary, written)):
            return True
        for call in _calls(statement):
            called = call.function
            if isinstance(called, m.Attribute) and called.name in _CHANGING and _is_dictionary(called.value):
                return True
    return False


def _calls(statement: m.Statement) -> Iterator[m.Call]:
    parts = (part for expr in evaluated(statement) for part in within(expr))
    return (part for part in parts if isinstance(part, m.Call))


def _is_in_dictionary(expr: m.Expr | None) -> bool:
    """Return whether an expression is a dictionary of attributes, or an item of it."""
    return _is_dictionary(expr) or (isinstance(expr, m.Subscript) and _is_dictionary(expr.value))


def _is_dictionary(expr: m.Expr | None) -> bool:
    """Return whether an expression is `x.__dict__` or `vars(x)`."""
    if isinstance(expr, m.Attribute):
        return expr.name == _ATTRIBUTES
    return isinstance(expr, m.Call) and expr.function == _ATTRIBUTES_OF and len(expr.arguments) == 1
