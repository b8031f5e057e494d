"""Path created on one node's own disk, but used on every node.

A *global rank* is the number of a process in the whole job, and a *local rank* is its number within
its node (machine). A file that global rank 0 writes to `/tmp`, or to another local disk, exists
only on its own node. Ranks on other nodes fail with `FileNotFoundError`, or read a file that an
earlier job left there. A test on one node does not show it.

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

Node-local paths are `/tmp`, `$TMPDIR`, and the like, all paths in `local-paths`, and every path
with `filesystem = "local"`. For paths that these two settings name, the rule also reports code that
lets the main process go first. The main process is on one node only. On every other node, all
processes then run the code at once. The rule also reports a new temporary file or directory whose
path is sent to ranks on other nodes.

Not reported when:
* only the main process uses the path;
* processes of other nodes create the path too;
* a call in the project starts all processes of the job, which are therefore on one node, and no
  setting says otherwise;
* the path is a cache, data, or a download, and no setting says whether it is node-local, unless you
  pass `--profile strict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import (
    STORAGE,
    Promise,
    Rule,
    Witness,
    WitnessStep,
    code,
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


_LOST: Final = "ranks on the other nodes do not find it"


def check(project: Project) -> Iterator[Finding]:
    """Find paths that one process of the job creates on the disk of its own node."""
    yield from one_per_call(map(_told, project.absences()))


def _told(absence: Absence) -> Finding:
    access, use = absence.access, absence.use
    path, lies = code(access.path_source), "is" if absence.is_known else "may be"
    if absence.kind == "first":
        said = f"only rank 0 of the job runs first, but {path} {lies} on each node's own disk"
        waiting = [WitnessStep(process, "is on node 1; rank 0 of the job is done") for process in (0, 1)]
        steps = (
            *waiting,
            WitnessStep(0, access.display, "begins"),
            WitnessStep(1, access.display, "begins at the same time"),
        )
        harm = f"the processes of another node create {path} at the same time"
    elif absence.kind == "sent":
        said = f"{path} is on one node's own disk, and its name is sent to the ranks of all nodes"
        uses = WitnessStep(1, f"uses {path} on node 1", "FileNotFoundError")
        steps = (WitnessStep(0, access.source, "sends it"), uses)
        harm = _LOST
    else:
        said = f"only rank 0 of the job creates {path}, but it {lies} on each node's own disk"
        made = WitnessStep(0, access.display, "done, on the disk of node 0")
        steps = (WitnessStep(1, "is on node 1"), made, WitnessStep(1, use.display, "FileNotFoundError"))
        harm = _LOST
    shown = () if use is access else (related(use, "the ranks of all nodes use it here"),)
    witness, strict = Witness(steps, harm), not absence.is_known and absence.kind != "sent"
    return RULE.finding(access, said, witness=witness, related=(*shown, *done_at(access)), strict=strict)
