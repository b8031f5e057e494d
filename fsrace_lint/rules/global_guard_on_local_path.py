"""The main process makes a path on its own node, and all nodes look for it.

There is one process with rank 0 in the whole job. What it puts into `/tmp`, or on
another disk of its node, is there for the processes of that node alone: those of
the other nodes find nothing, or what an earlier job left, and die with
FileNotFoundError. On one node nobody sees it.

Bad:
    import torch
    import torch.distributed as dist


    def share(state: dict) -> dict:
        if dist.get_rank() == 0:
            torch.save(state, "/tmp/weights.pt")
        dist.barrier()
        return torch.load("/tmp/weights.pt")

Good:
    import os

    import torch
    import torch.distributed as dist


    def share(state: dict, shared: str) -> dict:
        if dist.get_rank() == 0:
            torch.save(state, os.path.join(shared, "weights.pt"))
        dist.barrier()
        return torch.load(os.path.join(shared, "weights.pt"))

Silent when: only the main process uses it; processes of other nodes make it too;
a call in the project starts the processes of the job, which are then on one node,
and no setting says otherwise. What nodes have for themselves are `/tmp`, `$TMPDIR`
and the like, `local-paths`, and everything with `filesystem = "local"`; what these
two name is also reported where the main process only goes first, and the others
come after it: on another node they all come at once. The strict profile reports
caches, data and what is downloaded also where nobody says which it is, and the path
of a new temporary file that is sent to processes of other nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import (
    STORAGE,
    Promise,
    Rule,
    Witness,
    WitnessStep,
    done_at,
    one_per_call,
    related,
)
from fsrace_lint.rules.remedies import LOCAL_GUARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.node_visibility import Absence
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR406",
    name="global-guard-on-local-path",
    remedies=(LOCAL_GUARD,),
    promises=(Promise.TMP,),
    settings=STORAGE,
)


_LOST: Final = "process 1 does not find it, on the disk of node 1"


def check(project: Project) -> Iterator[Finding]:
    """Find what one process of the job makes where only its node has it."""
    yield from one_per_call(map(_told, project.absences()))


def _told(absence: Absence) -> Finding:
    access, use = absence.access, absence.use
    if absence.kind == "first":
        has = "has" if absence.is_known else "may have"
        said = f"the main process goes first, but every node {has} its own {access.path_source}"
        said += ", and all come at once"
        waiting = [
            WitnessStep(process, "is on node 1, and waits for process 0 of node 0") for process in (0, 1)
        ]
        steps = (
            *waiting,
            WitnessStep(0, access.display, "begins"),
            WitnessStep(1, access.display, "begins too"),
        )
        harm = f"processes 0 and 1 spoil {access.path_source} for each other"
    elif absence.kind == "sent":
        said = f"{access.path_source} lies on the node of the process that made it, and is sent to the others"
        uses = WitnessStep(1, f"uses {access.path_source} on node 1", "FileNotFoundError")
        steps = (WitnessStep(0, access.source, "sends it"), uses)
        harm = _LOST
    else:
        where = "on its own node" if absence.is_known else "perhaps on its own node"
        said = (
            f"only the main process makes {access.path_source}, {where}, and those of other nodes look for it"
        )
        made = WitnessStep(0, access.display, "done, on the disk of node 0")
        steps = (WitnessStep(1, "is on node 1"), made, WitnessStep(1, use.display, "FileNotFoundError"))
        harm = _LOST
    shown = () if use is access else (related(use, "processes of all nodes use it here"),)
    witness, strict = Witness(steps, harm), not absence.is_known and absence.kind != "sent"
    return RULE.finding(access, said, witness=witness, related=(*shown, *done_at(access)), strict=strict)
