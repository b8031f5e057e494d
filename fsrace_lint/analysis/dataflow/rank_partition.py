"""How tests divide the processes of a job, and how such splits combine."""

from __future__ import annotations

from typing import Final, TypeAlias

from fsrace_lint.analysis.dataflow.process_set import (
    ALL,
    ANOTHER,
    FIRST,
    GROUP_FIRSTS,
    MAIN,
    NOBODY,
    NODE_FIRSTS,
    NOT_FIRST,
    TWO,
    Processes,
)

Split: TypeAlias = "tuple[Processes, Processes]"
"""How a test divides the processes: those that can see it true, and those that can see it false."""

UNDIVIDED: Final[Split] = (ALL, ALL)
_FIRST_TWO: Final[dict[tuple[str, int | None], Split]] = {
    ("<", 2): (TWO, ALL & ~MAIN),
    ("<=", 1): (TWO, ALL & ~MAIN),
    (">", 1): (ALL & ~MAIN, TWO),
    (">=", 2): (ALL & ~MAIN, TWO),
}


def compare_rank(rank: str, operator: str, number: int | None) -> Split:
    """Split by a comparison of a rank with a number.

    Args:
        rank: The scope of the rank.
        operator: The comparison.
        number: The number, or None where it is not known; `==` then picks one process.

    Returns:
        The split.
    """
    first = is_first(rank)
    table: dict[tuple[str, int | None], Split] = {
        ("==", 0): first,
        ("is", 0): first,
        ("!=", 0): first[::-1],
        ("is not", 0): first[::-1],
        ("<", 1): first,
        ("<=", 0): first,
        (">", 0): first[::-1],
        (">=", 1): first[::-1],
        ("==", -1): (MAIN, ALL),
        ("!=", -1): (ALL, MAIN),
        ("<", 0): (MAIN, ALL),
        (">=", 0): (ALL, MAIN),
        (">", -1): (ALL, MAIN),
    }
    if (operator, number) in table:
        return table[operator, number]
    one = {"global": ANOTHER, "filesystem": ANOTHER, "local": NODE_FIRSTS, "group": GROUP_FIRSTS}.get(rank)
    if one is None:
        return UNDIVIDED
    if operator in {"==", "is"}:
        return one, ALL
    if operator in {"!=", "is not"}:
        return ALL, one
    if rank not in {"global", "filesystem"}:
        return UNDIVIDED
    return _FIRST_TWO.get((operator, number), UNDIVIDED)


def combine(operator: str, splits: list[Split]) -> Split:
    """Join the splits of the operands of `and` or `or`."""
    if splits.count(UNDIVIDED) == len(splits):
        return UNDIVIDED
    true, false = splits[0]
    for other_true, other_false in splits[1:]:
        if operator == "and":
            true, false = true & other_true, false | (true & other_false)
        else:
            true, false = true | (false & other_true), false & other_false
    return true, false


def choose(test: Split, then: Split, otherwise: Split) -> Split:
    """Join the splits of `then if test else otherwise`; of two that pick one process, one is taken."""
    if test == UNDIVIDED and {then[0], otherwise[0]} == {MAIN, ANOTHER}:
        return MAIN, ALL
    return (
        (test[0] & then[0]) | (test[1] & otherwise[0]),
        (test[0] & then[1]) | (test[1] & otherwise[1]),
    )


def union(splits: list[Split]) -> Split:
    """Join splits of which any may be the one."""
    if UNDIVIDED in splits:
        return UNDIVIDED
    true, false = NOBODY, NOBODY
    for one in splits:
        true, false = true | one[0], false | one[1]
    return true, false


def is_first(scope: str) -> Split:
    """Split by a test that is true for the first process of a scope."""
    return FIRST[scope], NOT_FIRST[scope]


def compare_size(operator: str, number: int) -> Split:
    """Split by a comparison of the number of processes with a number: alone, or not."""
    alone, several = (MAIN, ALL), (ALL, MAIN)
    table = {
        ("==", 1): alone,
        ("<=", 1): alone,
        ("<", 2): alone,
        ("!=", 1): several,
        (">", 1): several,
        (">=", 2): several,
    }
    return table.get((operator, number), UNDIVIDED)
