"""How far a function is gone through with the constants that a call of it passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.project.names.constants import refutes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.facts import model as m
    from fsrace_lint.project.flow.states import Exit, State
    from fsrace_lint.project.names.modules import LinkedFunction


def excludes(call: m.Call, callee: LinkedFunction, state: State) -> bool:
    """Tell whether a call passes a constant with which the function called never comes to a state in it."""
    return any(
        refutes(call, callee, literal.test, literal.scope, truth=literal.truth) for literal in state.literals
    )


def open_ways(call: m.Call, callee: LinkedFunction, ways: Iterable[Exit]) -> tuple[Exit, ...]:
    """Leave of the ways out of a function those that it can take with the constants a call passes."""
    return tuple(way for way in ways if not excludes(call, callee, way.state))
