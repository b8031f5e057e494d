"""A rank is tested before the process group exists.

`get_rank() if is_initialized() else 0`, and every helper built like it, says 0 on
all processes as long as nobody has called `init_process_group`. So each of them
takes itself for the first, and all do what one should do.

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

Silent when: the rank is known before, from the environment; the group is created
first, or only if there is none, so that there may be one; the process that passes
the test leaves before; another test, a lock or the path keeps the processes apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Related, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import GUARD_LATER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR404",
    name="guard-before-init",
    default_from=Evidence.EVIDENT,
    remedies=(GUARD_LATER,),
    promises=(Promise.GROUP,),
)

_LOST = {"mkdir": "FileExistsError", "delete": "FileNotFoundError"}


def check(project: Project) -> Iterator[Finding]:
    """Find what every process does because each takes itself for the first."""
    for test in project.tests_before_init("write", "download", "extract", "mkdir", "delete"):
        access = test.access
        if not _is_harmful(access):
            continue
        yield RULE.finding(
            access,
            f"every process runs {access.display}: {test.source} tells nobody apart before {test.creator}",
            witness=Witness(
                (
                    WitnessStep(0, test.source, str(test.truth)),
                    WitnessStep(1, test.source, str(test.truth)),
                    WitnessStep(0, access.display, "in the middle of it"),
                    WitnessStep(1, access.display, "does the same to the same path"),
                ),
                "every process did what one should do",
            ),
            related=(Related(test.created, "the process group exists from here on"),),
        )


def _is_harmful(access: Access) -> bool:
    lost = _LOST.get(access.op)
    harmless = (
        access.operation.exclusive or access.operation.synchronized or access.is_private or access.locked
    )
    return not harmless and (lost is None or not access.tolerates(lost))
