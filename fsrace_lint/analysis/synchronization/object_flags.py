"""Flags of objects that only one rank sets, such as that of an early stopper that only rank 0 calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.dataflow.process_set import TOP, Runs, runs
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.traversal import all_in, target_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction


def one_sided_flag(expr: m.Attribute, scope: Environment, entry_states: EntryStates) -> Expression | None:
    """Return the rank check under which alone a function calls the methods that set a flag of an object.

    Args:
        expr: The flag, such as `stopper.has_stopped`.
        scope: The environment in which it is read.
        entry_states: Determines the ranks that reach a call.

    Returns:
        The rank check, or None if other ranks call the methods too, or one of them broadcasts a value.
    """
    if scope.get(target_name(expr) or "") is not None:
        return None
    setters = {method.facts.name: method for method in _setters(expr, scope, entry_states)}
    calls = [
        call_site
        for call_site in (entry_states.flows.call_sites(scope.function) if setters else ())
        if _method_of(expr.value, call_site.call.function) in setters
    ]
    by_one = all(runs(entry_states.processes(call_site)) is Runs.ONE for call_site in calls)
    if not by_one or any(map(entry_states.rank_dependence.agrees, setters.values())):
        return None
    tests = (test for call_site in calls for test in reversed(call_site.state.conditions))
    return next(
        (Expression(each.test, each.scope) for each in tests if entry_states.deciding(each) != TOP), None
    )


def _method_of(owner: m.Expr, called: m.Expr) -> str:
    """Return the name of the method of an object that a call runs, if it runs one."""
    if called == owner:
        return "__call__"
    return called.name if isinstance(called, m.Attribute) and called.value == owner else ""


def _setters(expr: m.Attribute, scope: Environment, entry_states: EntryStates) -> Iterator[LinkedFunction]:
    """Yield the methods, other than the constructor, that set a flag of an object to a constant."""
    resolver = entry_states.flows.resolver
    class_ = resolver.class_of(resolver.symbol(expr.value, scope))
    for name, _ in () if class_ is None else class_.facts.methods:
        method = None if class_ is None or name == "__init__" else class_.method(name)
        if method is not None and expr.name in method.facts.attributes and _sets(method, expr.name):
            yield method


def _sets(method: LinkedFunction, name: str) -> bool:
    flags = (statement for statement in all_in(method.facts.body) if isinstance(statement, m.Assign))
    return any(
        isinstance(flag.value, m.Constant) and isinstance(target, m.Attribute) and target.name == name
        for flag in flags
        for target in flag.targets
    )
