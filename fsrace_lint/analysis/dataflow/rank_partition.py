"""Rank partitions: how tests divide the processes of a job, and how partitions combine."""

from __future__ import annotations

from typing import Final, TypeAlias

from fsrace_lint.analysis.dataflow.process_set import (
    ANOTHER,
    BOTTOM,
    FIRST,
    GROUP_FIRSTS,
    MAIN,
    NODE_FIRSTS,
    NOT_FIRST,
    TOP,
    TWO,
    ProcessSet,
)

RankPartition: TypeAlias = "tuple[ProcessSet, ProcessSet]"
"""The processes for which a test can be true, and those for which it can be false."""

UNPARTITIONED: Final[RankPartition] = (TOP, TOP)
WHETHER_DISTRIBUTED: Final[tuple[RankPartition, ...]] = ((MAIN, TOP), (TOP, MAIN))
"""The partitions by tests of the world size, or of whether the job is initialized: one process, or more."""
_FIRST_TWO: Final[dict[tuple[str, int | None], RankPartition]] = {
    ("<", 2): (TWO, TOP & ~MAIN),
    ("<=", 1): (TWO, TOP & ~MAIN),
    (">", 1): (TOP & ~MAIN, TWO),
    (">=", 2): (TOP & ~MAIN, TWO),
}


def compare_rank(rank: str, operator: str, number: int | None) -> RankPartition:
    """Return the partition by a comparison of a rank with a number.

    Args:
        rank: The scope of the rank.
        operator: The comparison operator.
        number: The number, or None if it is unknown. `==` then selects one process.
    """
    first = is_first(rank)
    table: dict[tuple[str, int | None], RankPartition] = {
        ("==", 0): first,
        ("is", 0): first,
        ("!=", 0): first[::-1],
        ("is not", 0): first[::-1],
        ("<", 1): first,
        ("<=", 0): first,
        (">", 0): first[::-1],
        (">=", 1): first[::-1],
        ("==", -1): (MAIN, TOP),
        ("!=", -1): (TOP, MAIN),
        ("<", 0): (MAIN, TOP),
        (">=", 0): (TOP, MAIN),
        (">", -1): (TOP, MAIN),
    }
    if (operator, number) in table:
        return table[operator, number]
    one = {"global": ANOTHER, "filesystem": ANOTHER, "local": NODE_FIRSTS, "group": GROUP_FIRSTS}.get(rank)
    if one is None:
        return UNPARTITIONED
    if operator in {"==", "is"}:
        return one, TOP
    if operator in {"!=", "is not"}:
        return TOP, one
    if rank not in {"global", "filesystem"}:
        return UNPARTITIONED
    return _FIRST_TWO.get((operator, number), UNPARTITIONED)


def combine(operator: str, splits: list[RankPartition]) -> RankPartition:
    """Combine the partitions of the operands of `and` or `or`."""
    if splits.count(UNPARTITIONED) == len(splits):
        return UNPARTITIONED
    true, false = splits[0]
    for other_true, other_false in splits[1:]:
        if operator == "and":
            true, false = true & other_true, false | (true & other_false)
        else:
            true, false = true | (false & other_true), false & other_false
    return true, false


def choose(test: RankPartition, then: RankPartition, otherwise: RankPartition) -> RankPartition:
    """Combine the partitions of `then if test else otherwise`.

    If the test does not check the rank, and the values select MAIN and ANOTHER, one process is selected.
    """
    if test == UNPARTITIONED and {then[0], otherwise[0]} == {MAIN, ANOTHER}:
        return MAIN, TOP
    return (
        (test[0] & then[0]) | (test[1] & otherwise[0]),
        (test[0] & then[1]) | (test[1] & otherwise[1]),
    )


def union(splits: list[RankPartition]) -> RankPartition:
    """Combine the partitions of alternatives."""
    if UNPARTITIONED in splits:
        return UNPARTITIONED
    true, false = BOTTOM, BOTTOM
    for one in splits:
        true, false = true | one[0], false | one[1]
    return true, false


def is_first(scope: str) -> RankPartition:
    """Return the partition by a test that is true on rank 0 of a scope."""
    return FIRST[scope], NOT_FIRST[scope]


def compare_size(operator: str, number: int) -> RankPartition:
    """Return the partition by a comparison of the world size with a number."""
    alone, several = (MAIN, TOP), (TOP, MAIN)
    table = {
        ("==", 1): alone,
        ("<=", 1): alone,
        ("<", 2): alone,
        ("!=", 1): several,
        (">", 1): several,
        (">=", 2): several,
    }
    return table.get((operator, number), UNPARTITIONED)
