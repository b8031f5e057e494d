"""Interprets expressions: the calls in them, and the tests under which they run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from fsrace_lint.analysis.dataflow.abstract_state import (
    AbstractState,
    CallSite,
    ExceptionContext,
    PathCondition,
    RankTest,
    YieldPoint,
    join,
)
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, MAIN, TOP, ProcessSet
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED, WHETHER_DISTRIBUTED
from fsrace_lint.analysis.values.abstract_values import Argument, Environment, Expression, IterationElement
from fsrace_lint.analysis.values.assignment import targets_of
from fsrace_lint.analysis.values.type_hints import narrowed_by
from fsrace_lint.engine.query import computed_once
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import calls_in, last_name, unnegated
from fsrace_lint.syntax.traversal import target_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction


class Loop(msgspec.Struct):
    """A loop that is being interpreted.

    Attributes:
        over: Its iterable or test.
        start: The bindings in which its iterations start.
        breaks: The states at its `break` statements.
    """

    over: Expression
    start: Environment
    breaks: list[AbstractState] = msgspec.field(default_factory=list)


class TransferFunctions:
    """Interprets the expressions of one function."""

    def __init__(self, function: LinkedFunction, interpretation: Interpretation) -> None:
        """Initialize for one function; `interpretation` provides the meaning of its tests and calls."""
        self.function = function
        self.interpretation = interpretation
        self.partition = computed_once(interpretation.partition)
        self.call_sites: list[CallSite] = []
        self.yields: list[YieldPoint] = []
        self.exception_contexts: list[ExceptionContext] = []
        self.contexts: list[Expression] = []
        self.interrupted: list[AbstractState | None] = []
        self.silent = 0
        self.loops: list[Loop] = []
        self.how_left = ""
        self.within: Span | None = None
        self.rank_tests: list[RankTest] = []
        self.refuses_several = False
        self.latest = Environment(
            function, {p.name: Argument(function, p) for p in function.facts.parameters}
        )

    def assume(
        self, state: AbstractState | None, test: m.Expr, *, truth: bool, branch: m.If | None = None
    ) -> AbstractState | None:
        """Return the state after a test has an outcome, or None if the outcome is impossible."""
        if state is None:
            return None
        partition = self.partition(test, state.scope)
        processes, possible = state.processes, partition[0 if truth else 1]
        if possible != TOP:
            if possible != BOTTOM:
                place = self._place_of(test) if branch is None else branch.span
                is_for_rank = partition not in WHETHER_DISTRIBUTED
                self.rank_tests.append(RankTest(test, place, state.conditions, is_for_rank))
            processes &= possible
        implied = self._implied(state, test, truth=truth)
        if implied != TOP:
            processes &= implied
        if processes == BOTTOM:
            return None
        conditions = (*state.conditions, PathCondition(test, truth, state.scope, branch))
        scope = state.scope.bind(narrowed_by(test, state.scope, truth=truth))
        return replace(state, processes=processes, conditions=conditions, scope=scope)

    def take_back(self, state: AbstractState | None, test: m.Expr, *, truth: bool) -> None:
        """Remove the rank test just recorded if the other outcome fails in multiple processes."""
        if state is not None and self.partition(test, state.scope)[:: 1 if truth else -1] == (MAIN, TOP):
            self.rank_tests.pop()
            self.refuses_several = True

    def _place_of(self, test: m.Expr) -> Span:
        """Return the span for a test: its first call, the enclosing `if`, or else the previous call."""
        call = next(calls_in(test), None)
        if call is not None:
            return call.span
        if self.within is not None:
            return self.within
        return self.call_sites[-1].call.span if self.call_sites else self.function.facts.span

    def _implied(self, state: AbstractState, test: m.Expr, *, truth: bool) -> ProcessSet:
        """Return the processes that remain when a test rules out one side of an earlier `or`.

        After `if not path or rank == 0:` held, `if path:` leaves only rank 0.
        """
        name, holds = unnegated(test, truth=truth)
        processes = TOP
        if not isinstance(name, (m.Name, m.Attribute)):
            return processes
        for literal in (*state.conditions, *state.implied_conditions):
            earlier = literal.test
            if not isinstance(earlier, m.Boolean) or (earlier.operator == "or") != literal.truth:
                continue
            sides = [unnegated(value, truth=literal.truth) for value in earlier.values]
            if (name, not holds) in sides and _same_binding(name, literal.scope, state.scope):
                left = [v for v, side in zip(earlier.values, sides, strict=True) if side != (name, not holds)]
                rest = left[0] if len(left) == 1 else m.Boolean(earlier.operator, tuple(left))
                processes &= self.partition(rest, literal.scope)[0 if literal.truth else 1] if left else TOP
        return processes

    def evaluate(self, expr: m.Expr | None, state: AbstractState | None) -> AbstractState | None:
        """Interpret an expression; return None if its evaluation never finishes."""
        if state is None or expr is None:
            return state
        method = _EXPRESSIONS.get(type(expr))
        after = state if method is None else method(self, expr, state)
        if self.interrupted and not isinstance(expr, _NEVER_FAILING):
            self.can_fail(state)
        return after

    def test(self, expr: m.Expr, state: AbstractState | None) -> AbstractState | None:
        """Interpret a test, or an operand of one. Rank checks are assumed to raise no exception."""
        if not (self.interrupted and state is not None and isinstance(expr, _ASKING)):
            return self.evaluate(expr, state)
        if self.partition(expr, state.scope) == UNPARTITIONED:
            return self.evaluate(expr, state)
        self.interrupted.append(None)
        after = self.evaluate(expr, state)
        self.interrupted.pop()
        return after

    def can_fail(self, state: AbstractState | None) -> None:
        """Record that an exception can be raised in a state, which an enclosing `try` may catch."""
        if self.interrupted:
            self.interrupted[-1] = join(self.interrupted[-1], state, ())

    def _several(self, exprs: Iterable[m.Expr], state: AbstractState | None) -> AbstractState | None:
        for expr in exprs:
            state = self.evaluate(expr, state)
        return state

    def _attribute(self, expr: m.Attribute, state: AbstractState) -> AbstractState | None:
        return self.evaluate(expr.value, state)

    def _call(self, expr: m.Call, state: AbstractState) -> AbstractState | None:
        after = self.evaluate(expr.function, state)
        after = self._several(expr.arguments, after)
        after = self._several((keyword.value for keyword in expr.keywords), after)
        if after is None:
            return None
        self.can_fail(after)
        if not self.silent:
            around = (
                tuple(self.exception_contexts),
                tuple(self.contexts),
                tuple(loop.over for loop in self.loops),
            )
            self.call_sites.append(CallSite(self.function, expr, after, *around))
        kind = self.interpretation.control_role(expr.function, after.scope)
        if kind == "acquire" and any(last_name(argument) == "LOCK_UN" for argument in expr.arguments):
            kind = "release"
        match kind:
            case "exit":
                self.how_left = "exit"
                return None
            case "acquire":
                return replace(after, locks=(*after.locks, _lock_key(expr)))
            case "enter" if isinstance(expr.function, m.Attribute) and expr.arguments:
                entered = expr.function.value, Expression(expr.arguments[0], after.scope)
                return replace(after, entered=(*after.entered, entered))
            case "release":
                return replace(after, locks=tuple(lock for lock in after.locks if lock != _lock_key(expr)))
            case _:
                return self._survived(_closed(after, expr), expr)

    def _survived(self, state: AbstractState, call: m.Call) -> AbstractState | None:
        """Return the state after a call from which only some processes return."""
        survivors = self.interpretation.returning_processes(call, state.scope)
        if survivors == TOP:
            return state
        processes = state.processes & survivors
        if processes not in {BOTTOM, state.processes}:
            self.rank_tests.append(RankTest(call, call.span, state.conditions))
        if processes == BOTTOM:
            self.how_left = "exit"
            return None
        return state if processes == state.processes else replace(state, processes=processes)

    def _compare(self, expr: m.Compare, state: AbstractState) -> AbstractState | None:
        after = self.test(expr.left, state)
        for right in expr.rights:
            after = self.test(right, after)
        return after

    def _boolean(self, expr: m.Boolean, state: AbstractState) -> AbstractState | None:
        goes_on = expr.operator == "and"
        after = inner = self.test(expr.values[0], state)
        for index, value in enumerate(expr.values[1:], 1):
            before = self.assume(inner, expr.values[index - 1], truth=goes_on)
            if before is None:
                break
            inner = self.test(value, before)
            if inner is None:
                earlier = expr.values[0] if index == 1 else m.Boolean(expr.operator, expr.values[:index])
                return self.assume(after, earlier, truth=not goes_on)
        return after

    def _not(self, expr: m.Not, state: AbstractState) -> AbstractState | None:
        return self.test(expr.value, state)

    def _binary(self, expr: m.Binary, state: AbstractState) -> AbstractState | None:
        return self.evaluate(expr.right, self.evaluate(expr.left, state))

    def _conditional(self, expr: m.Conditional, state: AbstractState) -> AbstractState | None:
        after = self.test(expr.test, state)
        then = self.evaluate(expr.body, self.assume(after, expr.test, truth=True))
        other = self.evaluate(expr.orelse, self.assume(after, expr.test, truth=False))
        if then is not None and other is not None:
            return after
        return None if then is other else self.assume(after, expr.test, truth=then is not None)

    def _format(self, expr: m.Format, state: AbstractState) -> AbstractState | None:
        return self._several(expr.parts, state)

    def _subscript(self, expr: m.Subscript, state: AbstractState) -> AbstractState | None:
        return self.evaluate(expr.index, self.evaluate(expr.value, state))

    def _sequence(self, expr: m.Sequence, state: AbstractState) -> AbstractState | None:
        return self._several(expr.items, state)

    def _starred(self, expr: m.Starred, state: AbstractState) -> AbstractState | None:
        return self.evaluate(expr.value, state)

    def _opaque(self, expr: m.Opaque, state: AbstractState) -> AbstractState | None:
        return self._several(expr.parts, state)

    def _yield(self, expr: m.Yield, state: AbstractState) -> AbstractState | None:
        after = self.evaluate(expr.value, state)
        if after is not None and not self.silent:
            contexts = *self.contexts, *(context for _, context in after.entered)
            position, caught = len(self.call_sites), tuple(self.exception_contexts)
            self.yields.append(YieldPoint(expr.value, after, position, caught, contexts))
        return after

    def _comprehension(self, expr: m.Comprehension, state: AbstractState) -> AbstractState | None:
        after = inner = self.evaluate(expr.generators[0].iterable, state)
        loops = len(self.loops)
        for number, generator in enumerate(expr.generators):
            inner = self.evaluate(generator.iterable, inner) if number else after
            if inner is None:
                break
            iterable = Expression(generator.iterable, inner.scope)
            self.loops.append(Loop(iterable, inner.scope))
            element = IterationElement(iterable)
            inner = replace(inner, scope=inner.scope.bind(targets_of(generator.target, element)))
            for condition in generator.conditions:
                inner = self.assume(self.test(condition, inner), condition, truth=True)
        self._several(expr.results, inner)
        del self.loops[loops:]
        return after

    def _walrus(self, expr: m.Walrus, state: AbstractState) -> AbstractState | None:
        after = self.evaluate(expr.value, state)
        if after is None:
            return None
        return replace(after, scope=after.scope.bind({expr.name: Expression(expr.value, after.scope)}))


def _same_binding(expr: m.Name | m.Attribute, one: Environment, other: Environment) -> bool:
    name = target_name(expr)
    return name is not None and one.get(name) is other.get(name)


def _closed(state: AbstractState, call: m.Call) -> AbstractState:
    """Return the state after a call. Closing a file releases its lock, and closing a stack its contexts."""
    opened = state.locks or state.entered
    if not (opened and isinstance(call.function, m.Attribute) and call.function.name == "close"):
        return state
    closed = call.function.value
    locks = (lock for lock in state.locks if not is_file(lock, closed))
    entered = (each for each in state.entered if each[0] != closed)
    return replace(state, locks=tuple(locks), entered=tuple(entered))


def is_file(lock: m.Expr, file: m.Expr | None) -> bool:
    """Return whether a locked object is a file: the file object, or its descriptor."""
    match lock:
        case m.Call(function=m.Attribute(value=value, name="fileno")):
            return value == file
        case _:
            return lock == file


def _lock_key(call: m.Call) -> m.Expr:
    """Return the locked object: the receiver of `lock.acquire()`, or the file of `flock(file, …)`."""
    if isinstance(call.function, m.Attribute) and _TAKING.search(call.function.name) is not None:
        return call.function.value
    return call.arguments[0] if call.arguments else call.function


_TAKING: Final = re.compile("acquire|release")
_ASKING: Final = (m.Name, m.Attribute, m.Call, m.Subscript)
_NEVER_FAILING: Final = (m.Boolean, m.Call, m.Compare, m.Conditional, m.Constant, m.Lambda, m.Not, m.Walrus)
"""Expressions that cannot fail once their parts are evaluated.

A call records itself that it can fail, after its arguments are evaluated.
"""

_EXPRESSIONS: Final[dict[type, Callable[..., AbstractState | None]]] = {
    m.Attribute: TransferFunctions._attribute,
    m.Call: TransferFunctions._call,
    m.Compare: TransferFunctions._compare,
    m.Boolean: TransferFunctions._boolean,
    m.Not: TransferFunctions._not,
    m.Binary: TransferFunctions._binary,
    m.Conditional: TransferFunctions._conditional,
    m.Format: TransferFunctions._format,
    m.Subscript: TransferFunctions._subscript,
    m.Sequence: TransferFunctions._sequence,
    m.Starred: TransferFunctions._starred,
    m.Opaque: TransferFunctions._opaque,
    m.Comprehension: TransferFunctions._comprehension,
    m.Walrus: TransferFunctions._walrus,
    m.Yield: TransferFunctions._yield,
}
