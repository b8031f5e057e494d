"""Collective guarded by a filesystem or clock check that can differ between ranks.

Two ranks check whether a file exists. One checks before the file is created and the other one
after, or their nodes see different files. Only one of them enters the *collective*, a call that
every rank must make, such as a barrier. Both hang, one in this collective and the other one in the
next, until the *process group*, which connects the ranks, times out.

Bad:
    import os

    import torch.distributed as dist


    def prepare(path: str) -> None:
        if not os.path.exists(path):
            if dist.get_rank() == 0:
                os.makedirs(path)
            dist.barrier()

Good:
    import os

    import torch.distributed as dist


    def prepare(path: str) -> None:
        if dist.get_rank() == 0:
            os.makedirs(path, exist_ok=True)
        dist.barrier()

Ranks can also disagree if the condition uses a listing (`os.listdir()`, `glob`), a clock
(`time.time()`), the host name, an exception from a filesystem call, or a random number without a
seed. The rule reports these too. It also reports a loop that calls a collective once for each entry
of a listing, and a loop whose end each rank determines by such a check. And it reports a save in
which all ranks take part, if each rank looks for a free name by itself (such as the next
`version_N`): the ranks can choose different names.

The confidence is high if the program changes what the ranks check, or may create it, and no barrier
orders the change and the check. It is also high for a clock, a random number, and a path on the disk
of one node. It is medium if each rank checks a path of its own, or if the check runs elsewhere, such as
in a constructor. It is also medium if a loop checks one path repeatedly, or starts at a step that each
rank looks for. Otherwise, such as for a checkpoint of an earlier run, all ranks usually get the same
answer, and the confidence is low.

Not reported when:
* the ranks exchange the answer before the condition uses it (broadcast, gather);
* the ranks in the other branch call the same collective;
* the ranks that miss the collective fail with an exception, unless you pass `--profile strict`;
* the branch calls a function that calls the collective only under another condition, such as a
  setting, unless you pass `--profile strict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import Promise, Rule, missed_collective_finding
from fsrace_lint.rules.remedies import CHOOSE_ON_MAIN, COUNT_ON_MAIN, DECIDE_ON_MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR403",
    name="collective-under-filesystem-check",
    cwe=833,
    remedies=(DECIDE_ON_MAIN, CHOOSE_ON_MAIN, COUNT_ON_MAIN),
    promises=(
        Promise.COLLECTIVE,
        Promise.NFS,
    ),
)

_BY_CAUSE: Final = {"path": CHOOSE_ON_MAIN, "loop": COUNT_ON_MAIN}


def check(project: Project) -> Iterator[Finding]:
    """Find collectives that some ranks miss because of the filesystem, a clock, or the like."""
    for divergence in project.divergent():
        if divergence.is_by_files:
            remedy = _BY_CAUSE.get(divergence.how, DECIDE_ON_MAIN)
            yield missed_collective_finding(RULE, divergence, remedy)
