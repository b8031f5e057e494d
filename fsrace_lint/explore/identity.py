"""Who a process of the job is: its process id and its node, which are the same in every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from fsrace_lint.explore.scenario import Scenario

FIRST_PID: Final = 5_000_000
"""The process id of local rank 0; no kernel gives a real process such a number."""
LAUNCHER: Final = FIRST_PID - 1
"""The process id of the parent of all processes of the job, which lives as long as any of them."""


class Identity(NamedTuple):
    """What distinguishes a process from the others of its job.

    Attributes:
        rank: Its rank.
        life: How many times this rank was killed and started again before.
        pid: Its process id; processes on two nodes can have the same one.
        node: The number of its node.
        local_rank: Its rank among the processes of its node.
        seed: A number that no other process of the run has.
    """

    rank: int = 0
    life: int = 0
    pid: int = FIRST_PID
    node: int = 0
    local_rank: int = 0
    seed: int = 0

    @property
    def host(self) -> str:
        """The host name of its node."""
        return f"node{self.node}"


def identity(scenario: Scenario, rank: int, life: int = 0) -> Identity:
    """Return the identity of a process.

    Args:
        scenario: The scenario.
        rank: The rank of the process.
        life: How many times this rank was started before.

    Returns:
        Its identity.
    """
    on_node = scenario.processes // scenario.nodes
    node, local_rank = divmod(rank, on_node)
    pid = FIRST_PID + local_rank + (0 if scenario.same_pids else on_node * life)
    return Identity(rank, life, pid, node, local_rank, rank + scenario.processes * life)
