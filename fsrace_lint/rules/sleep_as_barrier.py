"""`time.sleep()` used instead of a barrier.

The sleep is meant to give other processes time to finish, or to keep them from starting too early.
It guarantees nothing, because a slow disk, a larger download, or a stalled node takes longer. A
process then reads a file that does not exist yet, or writes at the same time as another one. On the
machine where the delay was chosen, the code works.

Bad:
    import time

    import torch
    import torch.distributed as dist


    def load(path: str) -> object:
        if dist.get_rank() != 0:
            time.sleep(6)
        return torch.load(path)

Good:
    import torch
    import torch.distributed as dist


    def load(path: str) -> object:
        dist.barrier()
        return torch.load(path)

Not reported when:
* the sleep is in a loop that retries, waits, or watches;
* the processes synchronize after the sleep, before anything depends on the order;
* nothing after the sleep in the function accesses a path;
* it is not clear that multiple processes run the code, unless you pass `--profile strict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, related
from fsrace_lint.rules.remedies import BARRIER_FOR_SLEEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.sleeps import Sleep
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR408",
    name="sleep-as-barrier",
    is_tentative=True,
    default_from=Evidence.LIKELY,
    remedies=(BARRIER_FOR_SLEEP,),
    promises=(
        Promise.SLEEP,
        Promise.COLLECTIVE,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find sleeps after which the code depends on the work of other processes."""
    for pause in project.sleeps():
        use = pause.use
        yield RULE.finding(
            pause.access,
            f"{code(pause.told)} does not ensure that other processes are done with {code(use.path_source)}",
            witness=_witness(pause),
            related=[
                *([] if pause.change is None else [related(pause.change, "this work may be unfinished")]),
                related(use, "this relies on it"),
            ],
        )


def _witness(pause: Sleep) -> Witness:
    use = pause.use
    other = (
        "is still working on it" if pause.change is None else f"has not finished {code(pause.change.display)}"
    )
    return Witness(
        (
            WitnessStep(1, pause.told, "done"),
            WitnessStep(0, other),
            WitnessStep(1, use.display),
        ),
        f"a process can use {code(use.path_source)} too early",
    )
