"""One rank makes or deletes a path and others use it, with nothing in between.

A rank test lets one process do the work; it does not make the others wait. A
fast rank opens the file before it is there, or while it is half written, and a
slow rank still reads what is already deleted. On one node with a warm cache
the order is right by luck.

Bad:
    import numpy as np
    import torch.distributed as dist


    def index(path: str, rows: list[int]) -> np.ndarray:
        if dist.get_rank() == 0:
            np.save(path, rows)
        return np.load(path)

Good:
    import numpy as np
    import torch.distributed as dist


    def index(path: str, rows: list[int]) -> np.ndarray:
        if dist.get_rank() == 0:
            np.save(path, rows)
        dist.barrier()
        return np.load(path)

It also reports one rank that reads what all ranks have written, that deletes what
the others still use, that clears a folder into which they write, or that makes what
they take for another run's where they find it. Functions that are called count with
what they do.

Silent when: a barrier, a broadcast, a gather or a save of all ranks lies on the way
between, also where a setting or `is_initialized()` decides over it; the two-sided
form has `if rank != 0: barrier()` before and `if rank == 0: barrier()` behind; the
context lets the main process in first; the user of the path is guarded likewise,
holds the same lock, or handles that nothing is there. A barrier behind a test of
the filesystem does not count: ranks can disagree about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep, happens, one_per_call
from fsrace_lint.rules.remedies import ORDERING, for_barrier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR401",
    name="missing-barrier",
    cwe=362,
    remedies=ORDERING,
    promises=(Promise.COLLECTIVE,),
    incidents=("OLMo",),
)

_SAID: Final = {
    "write-read": (
        "one rank makes {path} and the others use it",
        "process 1 finds nothing there, or half of it",
    ),
    "delete-use": (
        "one rank deletes {path} and the others go on there",
        "what process 1 has made is deleted",
    ),
    "use-delete": (
        "one rank deletes {path} while the others may still use it",
        "it is deleted under process 1",
    ),
    "write-gather": (
        "one rank reads {path} while others may still write there",
        "process 1 has not written yet",
    ),
    "make-delete": (
        "one rank makes {path} while the others may still delete it",
        "process 1 deletes it",
    ),
    "make-refuse": (
        "one rank makes {path} while the others may still look, and refuse what they find",
        "process 1 takes it for that of another run and dies",
    ),
    "check-make": (
        "one rank may still look for {path}, and refuses what the others make",
        "process 0 takes it for that of another run and dies",
    ),
}


def check(project: Project) -> Iterator[Finding]:
    """Find acts of one rank and of others on one path that nothing orders; one act is one finding."""
    yield from one_per_call(_all(project))


def _all(project: Project) -> Iterator[Finding]:
    for pair in project.unordered():
        said, harm = _SAID[pair.kind]
        late, early = (0, 1) if pair.alone is pair.before else (1, 0)
        yield RULE.finding(
            pair.alone,
            f"{said.format(path=pair.path)}, with no barrier in between",
            witness=Witness(
                (
                    WitnessStep(early, pair.after.display, "early"),
                    WitnessStep(late, pair.before.display, "late"),
                ),
                harm,
            ),
            related=[Related(happens(pair.shared), "by others, not ordered with this")],
            fix=for_barrier(pair),
            strict=not pair.certain,
        )
