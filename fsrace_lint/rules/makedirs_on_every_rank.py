"""Every process creates this shared directory, with exist_ok=True.

`exist_ok=True` is carried out as: try to create it, and where that fails, ask
whether a directory is there. On a network filesystem the answer of the server is
kept for some seconds by each node. A process that was told a moment ago that
nothing is there gets the old answer again: FileExistsError from a call that
promises none. The more processes do it at once, the more often that happens.

Bad:
    import os

    import torch.distributed as dist


    def train(out: str) -> None:
        dist.init_process_group("gloo")
        os.makedirs(out, exist_ok=True)

Good:
    import os

    import torch.distributed as dist


    def train(out: str) -> None:
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            os.makedirs(out, exist_ok=True)
        dist.barrier()

Silent when: one process of the job, of each node or of each group runs it;
FileExistsError is handled; a lock is held; the path belongs to one process, or lies on the node's
own disk; the same directory is made or removed before it in the same function; nothing
in the file shows that there are several processes. The default profile never reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import STORAGE, Evidence, Promise, Rule, Severity, Witness, WitnessStep
from fsrace_lint.rules.remedies import ENSURE_DIR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR106",
    name="makedirs-on-every-rank",
    severity=Severity.WARNING,
    default_from=None,
    remedies=(ENSURE_DIR,),
    promises=(
        Promise.MKDIR,
        Promise.NFS,
    ),
    incidents=("Lingua",),
    settings=STORAGE,
)


def check(project: Project) -> Iterator[Finding]:
    """Find directories that every process creates where it accepts that another one did."""
    remade = {mkdir for _, mkdir in project.pairs({"delete"}, {"mkdir"})}
    for mkdir in project.accesses("mkdir"):
        if mkdir not in remade and _is_hazard(project, mkdir):
            yield RULE.finding(
                mkdir,
                f"every process creates {mkdir.destination}: exist_ok=True can fail on a network filesystem",
                witness=Witness(
                    (
                        WitnessStep(
                            1, f"looks for {mkdir.destination}", "not there, which its node remembers"
                        ),
                        WitnessStep(0, mkdir.display, "done"),
                        WitnessStep(1, mkdir.display, "is told that something is there"),
                        WitnessStep(1, "asks whether it is a directory", "no, as its node remembers"),
                    ),
                    "process 1 dies with FileExistsError",
                ),
            )


def _is_hazard(project: Project, mkdir: Access) -> bool:
    accepts_by_flag = (
        mkdir.operation.tolerant and not mkdir.operation.tree and not mkdir.handles("FileExistsError")
    )
    by_all = mkdir.is_contended and not mkdir.is_one_of_group
    if not (by_all and accepts_by_flag and mkdir.is_shared_by_nodes):
        return False
    return mkdir.evidence is Evidence.EVIDENT or project.stands_among_processes(mkdir)
