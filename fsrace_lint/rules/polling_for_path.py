"""Processes wait for a path by looking for it again and again.

That something of this name is there does not say that it is whole, or that it is new. They go on with half
a file, or with the one that an earlier run left. On a network filesystem the answer can be minutes old. If
the process that makes it dies, those that wait do so for ever, or give up one by one, each by its own
clock, and leave the others in the next collective. A barrier orders what a poll guesses.

Bad:
    import os
    import time

    import torch.distributed as dist


    def wait_for_index(index: str) -> None:
        if dist.get_rank() != 0:
            while not os.path.exists(index):
                time.sleep(1)

Good:
    import torch.distributed as dist


    def wait_for_index() -> None:
        dist.barrier()

Silent when: each process waits for a path of its own; what is waited for is that a lock file goes away.
Only the strict profile reports it where nothing shows that several processes run it, unless it waits for
ever for a file whose name is written out, where one waits, where it takes ten minutes or more (as a
collective does), or nobody knows how long, where they met before, so that only the view of a filesystem
can lag, until a path is gone, and where a helper is handed the path, which somebody removes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import Evidence, Promise, Related, Rule, Witness, WitnessStep, called, done_at
from fsrace_lint.rules.remedies import WAIT_IN_BARRIER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.polling import Poll
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR407",
    name="polling-for-path",
    remedies=(WAIT_IN_BARRIER,),
    promises=(
        Promise.NFS,
        Promise.COLLECTIVE,
    ),
    incidents=("OLMo",),
)
_LONG: Final = 600  # seconds, as torch.distributed waits in a collective of NCCL


def check(project: Project) -> Iterator[Finding]:
    """Find loops and helpers that wait until a path is there."""
    for poll in project.polls():
        limit, until_gone = poll.limit, not poll.is_for_presence
        is_short = limit.seconds is not None and limit.seconds < _LONG
        if not poll.is_for_others or (until_gone and poll.is_for_lock):
            continue
        is_patient = (limit.is_set or poll.is_ordered) and not is_short
        alone = poll.access.evidence is not Evidence.EVIDENT and (limit.is_set or not poll.is_named)
        yield RULE.finding(
            poll.access,
            f"the processes wait for {poll.access.path_source} by looking again and again, and {_end(poll)}",
            witness=_witness(poll, is_short=is_short),
            related=_seen(poll),
            strict=is_patient or alone or poll.is_for_one or until_gone or poll.is_handed,
        )


def _seen(poll: Poll) -> tuple[Related, ...]:
    access, looked = poll.access, poll.looked
    before = () if looked is None else (called(looked, "looks here before"),)
    return (*done_at(access), *before)


def _end(poll: Poll) -> str:
    seconds = poll.limit.seconds
    if not poll.is_for_presence or poll.is_left:
        return "find what an earlier run has left" if poll.is_left else "go on when they find it gone"
    return "take it as they find it" if seconds is None else f"each gives up by itself after {seconds:g} s"


def _witness(poll: Poll, *, is_short: bool) -> Witness:
    path, seconds = poll.access.path_source, poll.limit.seconds or 0
    late = (
        WitnessStep(0, f"is slow to make {path}"),
        WitnessStep(1, f"looks for {path}", f"nothing, and gives up after {seconds:g} s"),
        WitnessStep(0, f"makes {path} and goes on to the next collective"),
    )
    gone = (
        WitnessStep(0, f"removes {path} and makes it again"),
        WitnessStep(1, f"looks for {path}", "it is there"),
    )
    early = (
        WitnessStep(0, f"begins to make {path}"),
        WitnessStep(1, f"looks for {path}", "it is there"),
        WitnessStep(1, f"goes on and uses {path}"),
    )
    if not poll.is_for_presence:
        return Witness(gone, f"process 1 never sees that {path} was gone")
    if is_short and not poll.is_left:
        return Witness(late, "process 0 waits there for process 1, which has left")
    return Witness(early, f"process 1 works with half of {path}, as it would with an old one")
