"""A collective that some ranks alone reach, while those wait for all others.

A barrier, a broadcast or a save of all ranks returns when every process has
called it. Where a rank test, an early return or an exception keeps one of them
away, the others stand in it until the time-out of the process group, often
half an hour later, and the job dies far from the cause.

Bad:
    import torch
    import torch.distributed as dist


    def finish(model: torch.nn.Module, path: str) -> None:
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), path)
            dist.barrier()

Good:
    import torch
    import torch.distributed as dist


    def finish(model: torch.nn.Module, path: str) -> None:
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), path)
        dist.barrier()

Calls of the project's own functions count where they lead to a collective. It
is found in a branch, behind a return or a raise of some ranks, in a context
such as `main_process_first()`, in a handler of exceptions, and in a function
that a decorator or `run_on_main` lets one rank into. The first in a branch is
reported, and shows the others.

Silent when: the test comes out equal on all ranks (a setting, the number of
processes, `is_initialized()`, what was broadcast or gathered before); the other
way calls the same, also in the two-sided form `if rank != 0: barrier()` ...
`if rank == 0: barrier()`; a group is passed. Only the strict profile reports
it where a setting in the function called decides too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, missed_collective_finding
from fsrace_lint.rules.remedies import ALL_CALL_IT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR402",
    name="collective-under-guard",
    cwe=833,
    remedies=(ALL_CALL_IT,),
    promises=(Promise.COLLECTIVE,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find collectives that a rank test or an exception keeps some processes from."""
    for divergence in project.divergent():
        if not divergence.is_by_files:
            yield missed_collective_finding(RULE, divergence)
