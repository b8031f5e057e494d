"""Directory created on every rank without `exist_ok=True`.

Every process runs the call, but only the first one can create the directory. All other processes
fail with `FileExistsError`. A run with one process never shows the error.

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

Fix: `exist-ok` (unsafe) passes `exist_ok=True`, or `dirs_exist_ok=True` to `shutil.copytree()`.
Review it before you apply it. It is wrong where the failure is intentional, for example where a job
claims a run directory.

Not reported when:
* the call passes `exist_ok=True` or `dirs_exist_ok=True`;
* `FileExistsError`, `OSError`, or `Exception` is caught or suppressed, because the code then
  expects that only one process creates the directory;
* the code first checks whether the path exists (FSR101 or FSR102 reports that);
* only one process per job, or one per node, runs the call;
* a lock is held;
* the path is private to the process;
* with the default profile: it is not clear that multiple processes run the call;
* with the default profile: one rank of each group of ranks runs the call (`if tp_rank == 0:`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, one
from fsrace_lint.rules.remedies import EXIST_OK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR105",
    name="mkdir-without-exist-ok",
    default_from=Evidence.LIKELY,
    remedies=(EXIST_OK,),
    promises=(Promise.MKDIR,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find directories that every process creates without a check and without `exist_ok=True`."""
    for mkdir in project.accesses("mkdir"):
        if (
            not mkdir.is_contended
            or mkdir.tolerates("FileExistsError")
            or project.probe_of(mkdir) is not None
        ):
            continue
        yield RULE.finding(
            mkdir,
            f"every {one(mkdir)} creates directory {code(mkdir.path_source)} without `{_flag(mkdir)}`",
            witness=Witness(
                (WitnessStep(0, mkdir.display, "done"), WitnessStep(1, mkdir.display, "FileExistsError")),
                "all but the first process fail with `FileExistsError`",
            ),
            strict=mkdir.is_one_of_group,
        )


def _flag(mkdir: Access) -> str:
    return "dirs_exist_ok=True" if mkdir.operation.tree else "exist_ok=True"
