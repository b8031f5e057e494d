"""Every process creates this directory, and all but the first fail.

Nothing decides which process may create it, and nothing accepts that another
one already did: with more than one process, all but the first die with
FileExistsError.

Bad:
    import os

    import torch.distributed as dist


    def train(out: str) -> None:
        dist.init_process_group("gloo")
        os.makedirs(out + "/samples")

Good:
    import os

    import torch.distributed as dist


    def train(out: str) -> None:
        dist.init_process_group("gloo")
        os.makedirs(out + "/samples", exist_ok=True)

Fix: `exist-ok` (unsafe) passes `exist_ok=True`, or `dirs_exist_ok=True` to
`shutil.copytree`. Read it before you take it: where the failure is the point,
as in claiming a run directory, it would be wrong.

Silent when: the failure is accepted or FileExistsError is named in a handler,
which says that the exclusive result is wanted; one process of the job runs it;
a lock is held; the path belongs to one process. Where it is not evident that
several processes run it, only the strict profile reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import EXIST_OK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR105",
    name="mkdir-without-exist-ok",
    default_from=Evidence.EVIDENT,
    remedies=(EXIST_OK,),
    promises=(Promise.MKDIR,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find directories that every process creates, with no test and no tolerance."""
    for mkdir in project.accesses("mkdir"):
        if (
            not mkdir.is_contended
            or mkdir.tolerates("FileExistsError")
            or project.probe_of(mkdir) is not None
        ):
            continue
        yield RULE.finding(
            mkdir,
            f"every process creates {mkdir.path_source}, and all but the first fail",
            witness=Witness(
                (WitnessStep(0, mkdir.display, "done"), WitnessStep(1, mkdir.display, "FileExistsError")),
                "process 1 dies with FileExistsError",
            ),
            strict=mkdir.is_one_of_group,
        )
