"""`makedirs(exist_ok=True)` on every rank can fail on NFS.

`os.makedirs(exist_ok=True)` first tries to create the directory. If that fails, it checks whether
the path is a directory. On NFS, each node (machine) caches the answers of the server for a few
seconds. A node that recently saw no directory can get this stale answer again, so the call raises
`FileExistsError` in spite of `exist_ok=True`. The more ranks call it at once, the more often it
fails. A local disk never shows it.

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

Not reported when:
* only one process per job, or one per node, runs the call;
* one rank of each group of ranks runs the call (`if tp_rank == 0:`);
* `FileExistsError` is caught or suppressed;
* a lock is held;
* the path is private to the process, or on a local disk of the node;
* the same function creates or deletes the same directory before the call;
* nothing in the file shows that multiple processes run it;
* the profile is the default one, because only `--profile strict` enables this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    STORAGE,
    Evidence,
    Promise,
    Rule,
    Severity,
    Witness,
    WitnessStep,
    destination,
    one,
)
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
    """Find shared directories that every process creates with `exist_ok=True`."""
    remade = {mkdir for _, mkdir in project.pairs({"delete"}, {"mkdir"})}
    for mkdir in project.accesses("mkdir"):
        if mkdir not in remade and _is_hazard(project, mkdir):
            yield RULE.finding(
                mkdir,
                f"every {one(mkdir)} creates {destination(mkdir)}, and `exist_ok=True` can fail on NFS",
                witness=Witness(
                    (
                        WitnessStep(1, f"looks for {destination(mkdir)}", "missing (cached by its node)"),
                        WitnessStep(0, mkdir.display, "done"),
                        WitnessStep(1, mkdir.display, "already exists"),
                        WitnessStep(1, "asks whether it is a directory", "no (cached by its node)"),
                    ),
                    "the slower process fails with `FileExistsError`",
                ),
            )


def _is_hazard(project: Project, mkdir: Access) -> bool:
    accepts_by_flag = (
        mkdir.operation.tolerant and not mkdir.operation.tree and not mkdir.handles("FileExistsError")
    )
    by_all = mkdir.is_contended and not mkdir.is_one_of_group
    if not (by_all and accepts_by_flag and mkdir.is_shared_by_nodes):
        return False
    return mkdir.evidence >= Evidence.LIKELY or project.stands_among_processes(mkdir)
