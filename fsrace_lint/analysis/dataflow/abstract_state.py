"""Abstract states, and the results of interpreting a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fsrace_lint.analysis.values.abstract_values import Environment, Expression, merge
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedFunction


class PathCondition(Record, frozen=True, eq=False):
    """A test whose outcome is known at a point of a function.

    Attributes:
        test: The test. If `attempt` is set, the exceptions that may be caught.
        truth: The outcome.
        scope: The environment in which the test is evaluated.
        branch: The `if` statement, if the point is in one of its branches.
        exit: How the other branch leaves the code: `return`, `raise`, `exit`, `break`, or `continue`.
            Empty if it does not.
        attempt: The `try` statement whose exceptions are caught or not.
    """

    test: m.Expr
    truth: bool
    scope: Environment
    branch: m.If | None = None
    exit: str = ""
    attempt: m.Try | None = None


class AbstractState(Record, frozen=True, eq=False):
    """What holds at a point of a function.

    Attributes:
        processes: The processes that can reach the point.
        conditions: The tests on the way.
        scope: The bindings.
        locks: The objects that are locked.
        entered: The context managers that were passed to `enter_context()`, with the stack that leaves them.
        implied_conditions: Conditions that were not tested, but hold because a branch was left early. After
            `if several: assert not chosen`, it is `not several or not chosen`.
    """

    processes: ProcessSet
    conditions: tuple[PathCondition, ...]
    scope: Environment
    locks: tuple[m.Expr, ...] = ()
    entered: tuple[tuple[m.Expr, Expression], ...] = ()
    implied_conditions: tuple[PathCondition, ...] = ()


class ExceptionContext(Record, frozen=True, eq=False):
    """What catches exceptions around a call: the handlers of a `try`, or a suppressing context manager."""

    handlers: tuple[m.Handler, ...]
    suppressor: m.Call | None
    scope: Environment


class CallSite(Record, frozen=True, eq=False):
    """A call, and the context in which it runs.

    Attributes:
        function: The function that contains the call.
        call: The call.
        state: The state before the call, after its arguments are evaluated.
        exception_contexts: What catches exceptions around the call, outermost first.
        contexts: The context managers around the call, outermost first.
        loops: The iterables or tests of the loops around the call, outermost first.
    """

    function: LinkedFunction
    call: m.Call
    state: AbstractState
    exception_contexts: tuple[ExceptionContext, ...]
    contexts: tuple[Expression, ...]
    loops: tuple[Expression, ...]

    @property
    def repeated(self) -> bool:
        """Whether the call is in a loop."""
        return bool(self.loops)

    @property
    def all_contexts(self) -> tuple[Expression, ...]:
        """The context managers around the call, and those that an open `ExitStack` has entered."""
        return (*self.contexts, *(context for _, context in self.state.entered))


class ExitPoint(Record, frozen=True, eq=False):
    """An exit of a function.

    Attributes:
        value: The returned expression, or the raised exception. None at the end of the code.
        state: The state at the exit.
        position: The number of calls before the exit.
    """

    value: m.Expr | None
    state: AbstractState
    position: int


class YieldPoint(ExitPoint, frozen=True, eq=False):
    """A `yield` of a generator.

    Attributes:
        exception_contexts: What catches exceptions around the `yield`, outermost first.
        contexts: The context managers around the `yield`, outermost first.
    """

    exception_contexts: tuple[ExceptionContext, ...]
    contexts: tuple[Expression, ...]


class LoopExit(ExitPoint, frozen=True, eq=False):
    """A point at which an iteration of a loop ends.

    Attributes:
        loop: The iterable or test of the loop, as in `CallSite.loops`.
        start: The bindings in which the iterations start.
        how: The statement: `break`, `continue`, or an empty string at the end of the body.
    """

    loop: Expression
    start: Environment
    how: Literal["break", "continue", ""] = ""


class RankTest(Record, frozen=True, eq=False):
    """A test that not all processes pass.

    Attributes:
        test: The test.
        span: The span of the test.
        conditions: The conditions before the test.
        is_for_rank: Whether the test checks the rank, and not only whether there are multiple processes.
    """

    test: m.Expr
    span: Span
    conditions: tuple[PathCondition, ...]
    is_for_rank: bool = True


def caught_by(handler: m.Handler) -> m.Expr:
    """Return the exceptions that a handler names; a bare `except` names `BaseException`."""
    return m.Name("BaseException") if handler.caught is None else handler.caught


def mutually_exclusive(one: Iterable[PathCondition], other: Iterable[PathCondition]) -> bool:
    """Return whether two points are in different branches of one `if`, so that no process passes both."""
    taken = {Identity(literal.branch): literal.truth for literal in one if literal.branch is not None}
    return any(
        literal.branch is not None and taken.get(Identity(literal.branch), literal.truth) != literal.truth
        for literal in other
    )


class FlowResult(Record, frozen=True, eq=False):
    """The result of interpreting one function.

    Attributes:
        call_sites: The calls, in the order of evaluation.
        exits: The exits by `return`, or at the end of the code.
        exceptional_exits: The exits by a raised exception.
        loop_exits: The points at which an iteration of a loop ends.
        yields: The points at which a generator yields a value.
        scope: The bindings at the end.
        rank_tests: The tests that not all processes pass.
        fails_if_parallel: Whether the function fails if there are multiple processes.
    """

    call_sites: tuple[CallSite, ...]
    exits: tuple[ExitPoint, ...]
    exceptional_exits: tuple[ExitPoint, ...]
    loop_exits: tuple[LoopExit, ...]
    yields: tuple[YieldPoint, ...]
    scope: Environment
    rank_tests: tuple[RankTest, ...]
    fails_if_parallel: bool


def join(
    first: AbstractState | None,
    second: AbstractState | None,
    names: Iterable[str],
    test: Expression | None = None,
) -> AbstractState | None:
    """Join two states at a merge point; an unreachable state is None."""
    if first is None or second is None:
        return second if first is None else first
    return AbstractState(
        first.processes | second.processes,
        _common(first.conditions, second.conditions),
        merge(first.scope, second.scope, dict.fromkeys(names), test),
        tuple(lock for lock in first.locks if lock in second.locks),
        tuple(entered for entered in first.entered if entered in second.entered),
        _common(first.implied_conditions, second.implied_conditions),
    )


def join_all(states: Iterable[AbstractState | None], names: Sequence[str]) -> AbstractState | None:
    """Join multiple states at a merge point; an unreachable state is None."""
    joined: AbstractState | None = None
    for state in states:
        joined = join(joined, state, names)
    return joined


def _common(first: tuple[PathCondition, ...], second: tuple[PathCondition, ...]) -> tuple[PathCondition, ...]:
    length = 0
    for one, two in zip(first, second, strict=False):
        if one is not two:
            break
        length += 1
    return first[:length]
