"""How the analyses recurse into each other: names, ranks and the interpretation of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, ExitPoint
    from fsrace_lint.analysis.dataflow.process_set import ProcessSet
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Environment, Expression
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.syntax import model as m


class Interpretation(Protocol):
    """Interprets functions on demand, by their code alone.

    `values` asks it what functions bind and return, `ranks` asks how they exit, and `dataflow`, which
    interprets one function, asks it what tests and calls mean. Each of these may lead back to a
    function that is being interpreted: then the result is what is known so far, or unknown.
    """

    def call_sites(self, function: LinkedFunction, /) -> tuple[CallSite, ...]:
        """Return the calls in a function; none are known while it is being interpreted."""

    def final_environment(self, function: LinkedFunction, /) -> Environment | None:
        """Return the bindings at the end of a function's code, or those so far while it is interpreted."""

    def exit_points(self, function: LinkedFunction, /) -> tuple[ExitPoint, ...]:
        """Return the exits of a function; none are known while it is being interpreted."""

    def return_values(self, function: LinkedFunction, /) -> tuple[Expression, ...]:
        """Return what a function returns; nothing is known while it is being interpreted."""

    def result_partition(self, function: LinkedFunction, /) -> RankPartition:
        """Return which processes can see a function return something true, and which something false."""

    def partition(self, test: m.Expr, scope: Environment, /) -> RankPartition:
        """Return which processes can see a test true, and which false."""

    def control_role(self, called: m.Expr, scope: Environment, /) -> str:
        """Return what a call of this does to control flow or locks.

        One of `exit`, `suppressor`, `acquire`, `release`; empty for anything else.
        """

    def returning_processes(self, call: m.Call, scope: Environment, /) -> ProcessSet:
        """Return the processes that return from a call."""
