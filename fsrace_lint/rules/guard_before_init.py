"""Rank checked before the process group is initialized.

`get_rank() if is_initialized() else 0` returns 0 until the process calls `init_process_group()`,
which connects the processes of the job as a *process group*. The same holds for every helper built
like it. Until that call, each process acts as rank 0, and all of them do what only one should do. A
test with one process does not show it.

Bad:
    import torch.distributed as dist


    def is_main() -> bool:
        return not dist.is_initialized() or dist.get_rank() == 0


    def main(config: str) -> None:
        if is_main():
            with open("config.txt", "w") as file:
                file.write(config)
        dist.init_process_group("nccl")

Good:
    import torch.distributed as dist


    def is_main() -> bool:
        return not dist.is_initialized() or dist.get_rank() == 0


    def main(config: str) -> None:
        dist.init_process_group("nccl")
        if is_main():
            with open("config.txt", "w") as file:
                file.write(config)

Not reported when:
* the rank is known earlier, because it comes from the environment (`RANK`);
* the process group is initialized before the check;
* the code initializes the process group only if there is none, so it may exist before the check;
* the process that passes the check returns or exits before the process group is initialized;
* another rank check, a lock, or a separate path for each process prevents the race.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Related, Rule, Witness, WitnessStep, callee_of, code
from fsrace_lint.rules.remedies import GUARD_LATER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR404",
    name="guard-before-init",
    default_from=Evidence.LIKELY,
    remedies=(GUARD_LATER,),
    promises=(Promise.GROUP,),
)

_LOST = {"mkdir": "FileExistsError", "delete": "FileNotFoundError"}


def check(project: Project) -> Iterator[Finding]:
    """Find operations that every process runs because each one takes itself for rank 0."""
    for test in project.tests_before_init("write", "download", "extract", "mkdir", "delete"):
        access = test.access
        if not _is_harmful(access):
            continue
        yield RULE.finding(
            access,
            f"{code(test.source)} is {test.truth} on every process before {code(test.creator + '()')}",
            witness=Witness(
                (
                    WitnessStep(0, test.source, str(test.truth)),
                    WitnessStep(1, test.source, str(test.truth)),
                    WitnessStep(0, access.display, "in progress"),
                    WitnessStep(1, access.display, "does the same to the same path"),
                ),
                f"every process runs {callee_of(access)}, which only one process should run",
            ),
            related=(Related(test.created, "the process group is initialized here"),),
        )


def _is_harmful(access: Access) -> bool:
    lost = _LOST.get(access.op)
    harmless = (
        access.operation.exclusive or access.operation.synchronized or access.is_private or access.locked
    )
    return not harmless and (lost is None or not access.tolerates(lost))
