"""A sleep stands where a barrier should.

The other processes are to be done, or not to be there yet, when it is over. Nothing
makes that so: a slow disk, a larger download or a stalled node takes longer, and a
process reads what is not there yet, or writes at the same time as another. It goes
well on the machine where the seconds were chosen.

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

Silent when: the sleep belongs to a loop that tries again, waits or watches; the
processes meet after it, before anything depends on the order; nothing after it in
the function touches a path. In code that nothing shows to run in several processes,
only the strict profile reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, related
from fsrace_lint.rules.remedies import BARRIER_FOR_SLEEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.sleeps import Sleep
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR408",
    name="sleep-as-barrier",
    default_from=Evidence.EVIDENT,
    remedies=(BARRIER_FOR_SLEEP,),
    promises=(
        Promise.SLEEP,
        Promise.COLLECTIVE,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find sleeps after which something depends on what other processes have done."""
    for pause in project.sleeps():
        use = pause.use
        yield RULE.finding(
            pause.access,
            f"the processes sleep here and then {use.op} {use.path_source}, be the others done or not",
            witness=_witness(pause),
            related=[
                *([] if pause.change is None else [related(pause.change, "what is to be seen")]),
                related(use, "what needs the order"),
            ],
        )


def _witness(pause: Sleep) -> Witness:
    use = pause.use
    other = "still works on it" if pause.change is None else f"has not finished {pause.change.display}"
    return Witness(
        (
            WitnessStep(1, pause.told, "is over"),
            WitnessStep(0, other),
            WitnessStep(1, use.display),
        ),
        f"process 1 comes to {use.path_source} before process 0 is done with it",
    )
