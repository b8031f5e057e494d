"""A shared directory is removed and made anew by every process.

The slower process removes what the faster one has already put into the new
directory. Nothing fails at once: files are missing later, or a save fails because
its folder is gone. `ignore_errors=True` and `exist_ok=True` are no help: they keep
the processes quiet, and not apart.

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

Silent when: one process of the job or of each node runs it; a lock is held; the
path belongs to one process. Only the strict profile reports it where one process
of each group runs it, where what the path holds could not be followed, and where
it is not evident that several processes run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, done_at, related
from fsrace_lint.rules.remedies import RESET_ON_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR203",
    name="unguarded-reset",
    default_from=Evidence.EVIDENT,
    remedies=(RESET_ON_FIRST,),
    promises=(Promise.RMTREE,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find directories that every process deletes and makes anew; one delete is one finding."""
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
        f"every process removes {removal.path_source} and makes it anew, "
        "with what another one has put into it",
        witness=Witness(
            (
                WitnessStep(0, removal.display, "done"),
                WitnessStep(0, mkdir.display, "done"),
                WitnessStep(0, f"writes into {removal.path_source}"),
                WitnessStep(1, removal.display, "deletes what process 0 has written"),
                WitnessStep(1, mkdir.display, "done"),
            ),
            f"what process 0 has written to {removal.path_source} is gone",
        ),
        related=(
            *(related(mkdir, "made anew here") for mkdir in made),
            *done_at(removal),
        ),
        strict=removal.is_one_of_group or not removal.certain,
    )
