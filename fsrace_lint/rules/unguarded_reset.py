"""Every rank deletes and recreates a shared directory.

A slow rank deletes the files that a faster rank has already written to the new directory. Nothing
fails at once: files are missing later, or a save fails because its directory is missing.
`ignore_errors=True` and `exist_ok=True` hide errors, but do not prevent the data loss.

Bad:
    import os
    import shutil

    import torch.distributed as dist


    def start(out: str) -> None:
        dist.init_process_group("gloo")
        shutil.rmtree(out + "/samples", ignore_errors=True)
        os.makedirs(out + "/samples", exist_ok=True)

Good:
    import os
    import shutil

    import torch.distributed as dist


    def start(out: str) -> None:
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            shutil.rmtree(out + "/samples", ignore_errors=True)
            os.makedirs(out + "/samples", exist_ok=True)
        dist.barrier()

Not reported when:
* only one process per job, or one per node, runs the calls;
* a lock is held;
* the path is private to the process;
* with the default profile: one rank of each group of ranks runs the calls (`if tp_rank == 0:`);
* with the default profile: part of the path is unknown;
* with the default profile: it is not clear that multiple processes run the calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, done_at, one, related
from fsrace_lint.rules.remedies import RESET_ON_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR203",
    name="unguarded-reset",
    default_from=Evidence.LIKELY,
    remedies=(RESET_ON_FIRST,),
    promises=(Promise.RMTREE,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find directories that every process deletes and recreates; each deletion is one finding."""
    found: dict[Access, list[Access]] = {}
    for removal, mkdir in project.resets():
        if removal.operation.tree and removal.is_contended and mkdir.is_contended:
            found.setdefault(removal, []).append(mkdir)
    for removal, made in found.items():
        yield _finding(removal, made)


def _finding(removal: Access, made: list[Access]) -> Finding:
    mkdir = made[0]
    return RULE.finding(
        removal,
        f"every {one(removal)} deletes and recreates {code(removal.path_source)}",
        witness=Witness(
            (
                WitnessStep(0, removal.display, "done"),
                WitnessStep(0, mkdir.display, "done"),
                WitnessStep(0, f"writes into {code(removal.path_source)}"),
                WitnessStep(1, removal.display, "deletes what process 0 wrote"),
                WitnessStep(1, mkdir.display, "done"),
            ),
            "files that other processes wrote there are lost",
        ),
        related=(
            *(related(mkdir, "recreated here") for mkdir in made),
            *done_at(removal),
        ),
        strict=removal.is_one_of_group or not removal.certain,
    )
