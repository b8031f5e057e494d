"""What holds at one point of a function, and what was met on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """A test that came out one way before this point.

    `exit` says how the other way left the code (`return`, `raise`, `exit`,
    `break` or `continue`), or is empty where it stands in a branch of its own;
    `branch` is that branch. Where `attempt` is set, the test is whether one of
    the exceptions it names was caught from that `try`.
    """

    test: m.Expr
    truth: bool
    scope: Environment
    branch: m.If | None = None
    exit: str = ""
    attempt: m.Try | None = None


class AbstractState(Record, frozen=True, eq=False):
    """What holds at one point: who can be here, what was tested, what names mean, what is locked.

    `implied` is what was not tested here, but holds since one side of a branch before
    was left where it does not: `not several or not chosen` after `if several: assert not chosen`.
    """

    processes: ProcessSet
    conditions: tuple[PathCondition, ...]
    scope: Environment
    locks: tuple[m.Expr, ...] = ()
    implied_conditions: tuple[PathCondition, ...] = ()


class ExceptionContext(Record, frozen=True, eq=False):
    """What catches an exception around a call: handlers of a `try`, or a context that suppresses some."""

    handlers: tuple[m.Handler, ...]
    suppressor: m.Call | None
    scope: Environment


class CallSite(Record, frozen=True, eq=False):
    """A call, and the circumstances in which it runs.

    `loops` are those around it, the outermost first: what decides how many rounds each has.
    """

    function: LinkedFunction
    call: m.Call
    state: AbstractState
    exception_contexts: tuple[ExceptionContext, ...]
    contexts: tuple[Expression, ...]
    loops: tuple[Expression, ...]

    @property
    def repeated(self) -> bool:
        """Whether a loop is around it."""
        return bool(self.loops)


class ExitPoint(Record, frozen=True, eq=False):
    """A way out of the function: the value returned (None at the end of the code) and the state there.

    `position` counts the calls that stand before it.
    """

    value: m.Expr | None
    state: AbstractState
    position: int


class RankTest(Record, frozen=True, eq=False):
    """A test of a rank: where it stands, and what was tested before it."""

    span: Span
    conditions: tuple[PathCondition, ...]


def caught_by(handler: m.Handler) -> m.Expr:
    """Give the exceptions that a handler names; a bare one catches all."""
    return m.Name("BaseException") if handler.caught is None else handler.caught


def mutually_exclusive(one: Iterable[PathCondition], other: Iterable[PathCondition]) -> bool:
    """Tell whether two points lie on different sides of one branch, so that no process passes both."""
    taken = {Identity(literal.branch): literal.truth for literal in one if literal.branch is not None}
    return any(
        literal.branch is not None and taken.get(Identity(literal.branch), literal.truth) != literal.truth
        for literal in other
    )


class FlowResult(Record, frozen=True, eq=False):
    """All that was found while following one function; `raises` are the ways out by a raised exception.

    `alone` says that it fails where there are several processes.
    """

    call_sites: tuple[CallSite, ...]
    exits: tuple[ExitPoint, ...]
    exceptional_exits: tuple[ExitPoint, ...]
    scope: Environment
    rank_tests: tuple[RankTest, ...]
    fails_if_parallel: bool


def join(
    first: AbstractState | None,
    second: AbstractState | None,
    names: Iterable[str],
    test: Expression | None = None,
) -> AbstractState | None:
    """Join two ways that meet; a way that does not get here is None."""
    if first is None or second is None:
        return second if first is None else first
    return AbstractState(
        first.processes | second.processes,
        _common(first.conditions, second.conditions),
        merge(first.scope, second.scope, dict.fromkeys(names), test),
        tuple(lock for lock in first.locks if lock in second.locks),
        _common(first.implied_conditions, second.implied_conditions),
    )


def join_all(states: Iterable[AbstractState | None], names: Sequence[str]) -> AbstractState | None:
    """Join several ways that meet; those that do not get here are None."""
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
