"""The timeouts of loops that wait."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.loops import calls_in, calls_of, tests_of
from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import all_in, children, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.loops import LoopStatement
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 6
_ORDER: Final = frozenset({"<", "<=", ">", ">="})
_COUNTER: Final = re.compile(
    r"(?:^|_)(?:attempts?|counter|count|i|iterations?|n|retr(?:y|ies)|tr(?:y|ies))(?:_|$)"
)


class WaitLimit(Record, frozen=True):
    """The longest time that a loop waits.

    Attributes:
        is_set: Whether there is a limit.
        seconds: The limit, if known.
        parameter: The parameter of the function that determines the limit, if any.
        factor: The number of seconds for each unit of the parameter.
    """

    is_set: bool
    seconds: float | None = None
    parameter: m.Parameter | None = None
    factor: float = 1


class WaitLimits:
    """Computes the limits of loops that wait."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows

    def is_sleep(self, call_site: CallSite) -> bool:
        """Return whether a call only sleeps."""
        catalog = self.flows.catalog
        if last_name(call_site.call.function) not in catalog.last_names["sleep"]:
            return False
        name = self.flows.resolver.qualify(call_site.call.function, call_site.state.scope)
        return name is not None and catalog.exact("sleep", name) is not None

    def of(self, loop: LoopStatement, call_sites: dict[m.Call, CallSite], look: m.Call) -> WaitLimit:
        """Return the longest time that a loop waits.

        Args:
            loop: A loop that waits.
            call_sites: The calls of its function.
            look: The call whose result it waits for.

        Returns:
            The limit. If the loop counts its iterations, their number times the duration of the sleep.
        """
        called = [call_sites[call] for call in calls_in(loop.body) if call in call_sites]
        pause = next((call_site for call_site in called if self.is_sleep(call_site)), None)
        if pause is None:
            return WaitLimit(is_set=isinstance(loop, m.For))
        scope = pause.state.scope
        seconds = (
            self._number(pause.call.arguments[0], scope) if pause.call.arguments else WaitLimit(is_set=True)
        )
        if isinstance(loop, m.For):
            return _times(self._number(_rounds(loop.iterable), scope), seconds.seconds)
        counted = self._counted_down(loop, pause, seconds)
        if counted is not None:
            return counted
        for test in tests_of(loop):
            for compare in _comparisons(test, look):
                sides = (compare.left, compare.rights[0])
                found = [self._number(side, scope) for side in sides]
                limit = next((one for one in found if one.seconds is not None or one.parameter), None)
                counts = any(_COUNTER.search(last_name(side)) is not None for side in sides)
                limit = limit or WaitLimit(is_set=True)
                return _times(limit, seconds.seconds) if counts else limit
        return WaitLimit(is_set=False)

    def _counted_down(self, loop: m.While, pause: CallSite, seconds: WaitLimit) -> WaitLimit | None:
        """Return the limit of a loop that decreases a variable until a condition on it changes, or None."""
        tested = [expr for test in tests_of(loop) for expr in within(test)]
        for left, step in _steps_down(loop):
            if left in tested:
                scope = next(over.scope for over in pause.loops if over.expr is loop.test)
                start, by = self._number(left, scope), self._number(step, scope).seconds
                if pause.call.arguments[:1] == (step,):
                    return start
                return _times(start, seconds.seconds / by if seconds.seconds and by else None)
        return None

    def passed(self, limit: WaitLimit, call_site: CallSite, callee: LinkedFunction) -> WaitLimit:
        """Return the limit with the arguments of one call of the waiting function."""
        arguments = bind(call_site.call, callee)
        value = None if limit.parameter is None else arguments.argument_for(limit.parameter)
        return limit if value is None else _times(self._number(value, call_site.state.scope), limit.factor)

    def _number(self, expr: m.Expr, scope: Environment, depth: int = 0) -> WaitLimit:
        match expr:
            case m.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return WaitLimit(is_set=True, seconds=float(value))
            case m.Name() | m.Attribute() if depth < _DEEPEST:
                bound = self.entry_states.rank_tests.known(expr, scope)
                if isinstance(bound, Expression):
                    return self._number(bound.expr, bound.scope, depth + 1)
                if isinstance(bound, Argument):
                    default = bound.parameter.default
                    inner = (
                        WaitLimit(is_set=True) if default is None else self._number(default, scope, depth + 1)
                    )
                    return replace(inner, parameter=bound.parameter)
            case m.Binary(operator="*", left=left, right=right) if depth < _DEEPEST:
                factor = self._number(right, scope, depth + 1).seconds
                return _times(self._number(left, scope, depth + 1), factor)
            case m.Binary(operator="+", left=left, right=right) if depth < _DEEPEST:
                if self._is_now(left, scope):
                    return self._number(right, scope, depth + 1)
        return WaitLimit(is_set=True)

    def _is_now(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether a value is the result of a call without arguments, such as `time.time()`."""
        bound = self.entry_states.rank_tests.known(expr, scope)
        made = bound.expr if isinstance(bound, Expression) else expr
        return isinstance(made, m.Call) and not made.arguments and not made.keywords


def _times(limit: WaitLimit, factor: float | None) -> WaitLimit:
    if limit.seconds is None or factor is None:
        return WaitLimit(is_set=True, parameter=limit.parameter, factor=factor or 1)
    return replace(limit, seconds=limit.seconds * factor, factor=factor)


def _steps_down(loop: m.While) -> Iterator[tuple[m.Expr, m.Expr]]:
    """Yield the targets that a loop decreases in each iteration, and by how much."""
    for statement in all_in(loop.body):
        match statement:
            case m.Assign(targets=(target,), value=m.Binary(operator="-", left=left, right=step)):
                if left == target:
                    yield left, step


def _rounds(iterable: m.Expr) -> m.Expr:
    """Return the number of iterations of a loop over `range(count)`."""
    match iterable:
        case m.Call(function=m.Name(id="range"), arguments=(count,)):
            return count
        case _:
            return m.Opaque()


def _comparisons(test: m.Expr, look: m.Call) -> Iterator[m.Compare]:
    """Yield the comparisons in a condition that are about time or a count, not about the polled path."""
    if any(call is look for call in calls_of(test)) and isinstance(test, m.Compare):
        return
    if isinstance(test, m.Compare) and len(test.operators) == 1 and test.operators[0] in _ORDER:
        yield test
    for child in children(test):
        yield from _comparisons(child, look)
