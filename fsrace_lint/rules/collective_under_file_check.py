"""A collective that ranks call or not as each finds the filesystem, or its clock.

Two ranks ask whether a file is there. One asks before it is made and the other
after, or they sit on nodes that see different files. One goes into the
collective, the other passes it by, and both wait: one in this collective, the
other in the next.

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

The same holds for a listing (`os.listdir`, `glob`), a clock (`time.time()`), the
name of the node, a random number where nothing in the project sets a seed, an
exception from a filesystem call, for a loop over a listing with a collective in
it, and for a save by all ranks under a name that each rank has looked for by
itself, such as the next `version_N`.

Silent when: the answer is broadcast or gathered before it decides; the other
way calls the same. Only the strict profile reports it where the others die of
an exception, and where a setting in the function called decides too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, missed_collective_finding
from fsrace_lint.rules.remedies import DECIDE_ON_MAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR403",
    name="collective-under-file-check",
    cwe=833,
    remedies=(DECIDE_ON_MAIN,),
    promises=(
        Promise.COLLECTIVE,
        Promise.NFS,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find collectives that an answer of the filesystem, a clock or the like decides over."""
    for divergence in project.divergent():
        if divergence.is_by_files:
            yield missed_collective_finding(RULE, divergence)
