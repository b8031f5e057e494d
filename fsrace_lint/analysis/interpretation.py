"""The interface through which the analyses of names, ranks, and functions call each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, ExitPoint, YieldPoint
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Environment, Expression
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.syntax import model as m


class Interpretation(Protocol):
    """Interprets functions on demand, without information about their callers.

    `values` uses it for the bindings and return values of functions, and `ranks` for their exits.
    `dataflow`, which interprets one function, uses it for the meaning of tests and calls. A request can lead
    back to a function that is being interpreted. The result is then provisional, or unknown.
    """

    def call_sites(self, function: LinkedFunction, /) -> tuple[CallSite, ...]:
        """Return the call sites of a function, or nothing while it is being interpreted."""

    def final_environment(self, function: LinkedFunction, /) -> Environment | None:
        """Return the bindings at the end of a function, or the current ones while it is being interpreted."""

    def exit_points(self, function: LinkedFunction, /) -> tuple[ExitPoint, ...]:
        """Return the exit points of a function, or nothing while it is being interpreted."""

    def return_values(self, function: LinkedFunction, /) -> tuple[Expression, ...]:
        """Return the return values of a function, or nothing while it is being interpreted."""

    def yield_points(self, function: LinkedFunction, /) -> tuple[YieldPoint, ...]:
        """Return the points at which a generator yields, or nothing while it is being interpreted."""

    def result_points(self, function: LinkedFunction, /) -> Sequence[ExitPoint]:
        """Return the exit points of a function, or the points at which a generator yields."""

    def result_partition(self, function: LinkedFunction, /) -> RankPartition:
        """Return the processes for which a function can return a true value, and a false value."""

    def partition(self, test: m.Expr, scope: Environment, /) -> RankPartition:
        """Return the processes for which a test can be true, and for which it can be false."""

    def control_role(self, called: m.Expr, scope: Environment, /) -> str:
        """Return the effect of a call of `called` on control flow or locks.

        One of `exit`, `suppressor`, `acquire`, `release`, or `enter`; an empty string for any other call.
        """

    def returning_processes(self, call: m.Call, scope: Environment, /) -> ProcessSet:
        """Return the processes that return from a call."""

    def asks_about_group(self, call: m.Call, scope: Environment, /) -> bool:
        """Return whether a call of a library asks for a rank or for the number of processes."""
