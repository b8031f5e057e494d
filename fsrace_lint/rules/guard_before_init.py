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

from fsrace_lint.rules.base import Evidence, Related, Rule, Step, Witness
from fsrace_lint.rules.remedies import GUARD_LATER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Site
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(code="FSR404", name="guard-before-init", default_from=Evidence.EVIDENT, remedies=(GUARD_LATER,))

_LOST = {"mkdir": "FileExistsError", "delete": "FileNotFoundError"}


def check(project: Project) -> Iterator[Finding]:
    """Find what every process does because each takes itself for the first."""
    for test in project.before_the_group("write", "download", "extract", "mkdir", "delete"):
        site = test.site
        if not _is_harmful(site):
            continue
        yield RULE.finding(
            site,
            f"every process runs {site.told}: {test.spelled} tells nobody apart before {test.creator}",
            witness=Witness(
                (
                    Step(0, test.spelled, str(test.truth)),
                    Step(1, test.spelled, str(test.truth)),
                    Step(0, site.told, "in the middle of it"),
                    Step(1, site.told, "does the same to the same path"),
                ),
                "every process did what one should do",
            ),
            related=(Related(test.created, "the process group exists from here on"),),
        )


def _is_harmful(site: Site) -> bool:
    lost = _LOST.get(site.act.op)
    harmless = site.act.exclusive or site.act.synchronized or site.is_private or site.locked
    return not harmless and (lost is None or not site.tolerates(lost))
