"""Missing barrier between a write on one rank and a read on the others.

A rank check lets one rank do the work, but no barrier makes the other ranks wait for it. A fast rank fails
with `FileNotFoundError`, or reads a partial file. If rank 0 deletes a file, a slow rank might still need
it. On one node with a warm cache, the write usually ends before the read begins.

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

The rule also reports code in which one rank

* reads files that all ranks write;
* deletes files that other ranks still use;
* clears a directory that other ranks write to;
* creates a file before the others check that none is left from an earlier run: they find it and fail.

The two operations can be in functions that the code calls. A barrier that depends on a filesystem check
does not count, because ranks can get different answers. The confidence is low if unknown code in between
may wait for all ranks, such as `trainer.train()`, and if a setting such as `resume` leads to the read.

Not reported when:
* between the two operations, all ranks call a barrier, a broadcast, a gather, or a save in which all ranks
  take part. A call under a setting or `is_initialized()` counts too, because all ranks decide alike;
* the other ranks wait in `if rank != 0: barrier()`, until rank 0 has done the work and calls the barrier;
* the other ranks poll for the path, or wait for a file, message, or signal of rank 0 that comes after it;
* a context manager lets the main process go first (`main_process_first()`);
* the same rank check guards the code that uses the path;
* a lock is held for both operations, or the code that uses the path handles `FileNotFoundError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep, code, happens, one_per_call
from fsrace_lint.rules.remedies import ORDERING, for_barrier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR401",
    name="missing-barrier",
    is_tentative=True,
    remedies=ORDERING,
    promises=(Promise.COLLECTIVE,),
)

_SAID: Final = {
    "write-read": (
        "one rank creates {path} and other ranks use it",
        "the other ranks can find the path missing or partial",
    ),
    "delete-use": (
        "one rank deletes {path} and other ranks create files there",
        "files that the other ranks have created are deleted",
    ),
    "use-delete": (
        "one rank deletes {path} while other ranks may still use it",
        "the other ranks can find the path deleted",
    ),
    "write-gather": (
        "one rank reads {path} while other ranks may still write there",
        "that rank misses what slower ranks have not written yet",
    ),
    "make-delete": (
        "one rank creates {path} while other ranks may still delete it",
        "a slower rank deletes the path",
    ),
    "make-refuse": (
        "one rank creates {path} while other ranks may still check for it and refuse it",
        "a slower rank takes it for that of another run and fails",
    ),
    "check-make": (
        "one rank checks for {path} and refuses it, while other ranks may create it",
        "the slower rank takes it for that of another run and fails",
    ),
}


def check(project: Project) -> Iterator[Finding]:
    """Find unordered operations of one rank and of other ranks on one path; each is reported once."""
    yield from one_per_call(_all(project))


def _all(project: Project) -> Iterator[Finding]:
    for pair in project.unordered():
        said, harm = _SAID[pair.kind]
        late, early = (0, 1) if pair.alone is pair.before else (1, 0)
        yield RULE.finding(
            pair.alone,
            f"{said.format(path=code(pair.path))}, with no barrier in between",
            witness=Witness(
                (
                    WitnessStep(early, pair.after.display, "runs too early"),
                    WitnessStep(late, pair.before.display, "runs too late"),
                ),
                harm,
            ),
            related=[Related(happens(pair.shared), "used by other ranks here")],
            fix=for_barrier(project, pair),
            strict=not pair.certain,
            at_most=pair.at_most,
        )
