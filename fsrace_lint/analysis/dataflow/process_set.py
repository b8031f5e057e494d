"""Sets of the processes of a job, as far as rank tests distinguish them."""

from __future__ import annotations

import enum
from typing import Final


class Runs(enum.Enum):
    """Which processes run an operation."""

    ONE = "one process"
    PER_NODE = "one process on each node"
    PER_GROUP = "one process of each group"
    OTHERS = "all processes but the main one"
    MANY = "every process"


class ProcessSet(enum.IntFlag):
    """A set of kinds of processes.

    MAIN is global rank 0, which is also the first process of its node and of its groups. ANOTHER is one
    specific other process, such as the last. The other kinds differ by whether they are the first process of
    their node, and of their group.
    """

    NOBODY = 0
    MAIN = 1
    ANOTHER = 2
    FIRST_OF_NODE_AND_GROUP = 4
    FIRST_OF_NODE = 8
    FIRST_OF_GROUP = 16
    REST = 32

    def __and__(self, other: int) -> ProcessSet:
        """Return the intersection; the method of `IntFlag` is ten times as slow."""
        return _SETS[int.__and__(self, other)]

    def __or__(self, other: int) -> ProcessSet:
        """Return the union."""
        return _SETS[int.__or__(self, other)]

    __rand__ = __and__
    __ror__ = __or__
    __hash__ = int.__hash__


_SETS: Final = tuple(map(ProcessSet, range(64)))

SYNCHRONIZING: Final = ("barrier", "collective", "collective-saver")
"""The kinds of catalog entries for calls in which processes wait for each other."""

TOP: Final = ProcessSet(63)
BOTTOM: Final = ProcessSet.NOBODY
MAIN: Final = ProcessSet.MAIN
ANOTHER: Final = ProcessSet.ANOTHER
TWO: Final = MAIN | ANOTHER
NODE_FIRSTS: Final = TWO | ProcessSet.FIRST_OF_NODE_AND_GROUP | ProcessSet.FIRST_OF_NODE
GROUP_FIRSTS: Final = TWO | ProcessSet.FIRST_OF_NODE_AND_GROUP | ProcessSet.FIRST_OF_GROUP
NOT_FIRST: Final = {
    "global": TOP & ~MAIN,
    "filesystem": TOP & ~MAIN,
    "local": ANOTHER | ProcessSet.FIRST_OF_GROUP | ProcessSet.REST,
    "group": ANOTHER | ProcessSet.FIRST_OF_NODE | ProcessSet.REST,
    "node": TOP,
    "worker": TOP,
}
"""The processes with a nonzero rank, by the scope of the rank.

Every node has processes of all kinds, and every process can have any worker.
"""
FIRST: Final = {
    "global": MAIN,
    "filesystem": MAIN,
    "local": NODE_FIRSTS,
    "group": GROUP_FIRSTS,
    "node": TOP,
    "worker": TOP,
}


def runs(processes: ProcessSet) -> Runs:
    """Classify a set of processes.

    An empty set counts as ONE: there are no processes to race with.
    """
    if processes in {BOTTOM, MAIN, ANOTHER}:
        return Runs.ONE
    if processes == TWO:
        return Runs.MANY
    if not processes & ~NODE_FIRSTS:
        return Runs.PER_NODE
    if not processes & ~GROUP_FIRSTS:
        return Runs.PER_GROUP
    return Runs.MANY if processes & MAIN else Runs.OTHERS
