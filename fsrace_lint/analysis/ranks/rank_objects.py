"""Tests whether there is an object that knows the rank. A process without one is the only one of its job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.dataflow.process_set import MAIN, TOP
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import unnegated
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.dataflow.abstract_state import PathCondition
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition


def asks_for_object(test: m.Expr, operands: tuple[m.Expr, ...]) -> bool:
    """Return whether an operand only tests the existence of an object that another operand asks."""
    asked, _ = _object_of(test)
    tests = (each.value if isinstance(each, m.Not) else each for each in operands)
    called = (each.function if isinstance(each, m.Call) else each for each in tests)
    return any(isinstance(each, m.Attribute) and each.value == asked for each in called)


def partition_by_object(
    test: m.Expr, then: tuple[m.Expr | None, RankPartition], otherwise: tuple[m.Expr | None, RankPartition]
) -> RankPartition | None:
    """Return how the existence of an object divides the processes: `state.is_main if state else True`.

    Args:
        test: The test of a choice.
        then: The value if the test holds, and its own partition.
        otherwise: The value if the test does not hold, and its own partition.

    Returns:
        The partition, or None if the test does not ask for an object that the chosen value asks.
    """
    asked, is_there = _object_of(test)
    value, partition = then if is_there else otherwise
    if value is None or partition == UNPARTITIONED or not _asks(value, asked):
        return None
    return (TOP, MAIN) if is_there else (MAIN, TOP)


def is_without_object(conditions: Iterable[PathCondition], values: Iterable[m.Expr]) -> bool:
    """Return whether a point is only reached without an object that one of some values asks for the rank."""
    known = list(values)
    for literal in conditions:
        asked, is_there = _object_of(literal.test)
        if is_there != literal.truth and any(_asks(value, asked) for value in known):
            return True
    return False


def _object_of(test: m.Expr) -> tuple[m.Expr, bool]:
    """Return the object of a test, and whether it exists if the test holds."""
    plain, is_there = unnegated(test, truth=True)
    match plain:
        case m.Compare(left=left, operators=("is" | "==",), rights=(m.Constant(value=None),)):
            return left, not is_there
        case m.Compare(left=left, rights=(m.Constant(value=None),)):
            return left, is_there
        case _:
            return plain, is_there


def _asks(value: m.Expr, asked: m.Expr) -> bool:
    return any(isinstance(part, m.Attribute) and part.value == asked for part in within(value))
