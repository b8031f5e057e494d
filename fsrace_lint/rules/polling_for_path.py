"""Polling for a file instead of using a barrier.

An existing file may be incomplete, left over from an earlier run, or hidden by a stale NFS answer. If the
process that creates it fails, other ranks wait forever, or give up and miss the next barrier.

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

Not reported when:
* the path is private to the process, or the code waits until a lock file is deleted;
* with the default profile: it is not clear that multiple processes run the loop. It is still reported if it
  waits without a limit for a file with a fixed name, because a file of an earlier run ends that wait;
* with the default profile: only one process waits, or the code waits until a path is deleted;
* with the default profile: the wait is limited to ten minutes or more, or to a time that is not known;
* with the default profile: the ranks synchronize before the wait, so only the filesystem can lag;
* with the default profile: a helper receives the path, unless its caller creates and keeps the file;
* with the default profile: the function creates the file itself, as an empty file or with fixed text, and
  deletes it or first checks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, called, code, done_at
from fsrace_lint.rules.remedies import WAIT_IN_BARRIER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.polling import Poll
    from fsrace_lint.findings.finding import Finding
    from fsrace_lint.rules.base import Related

RULE = Rule(
    code="FSR407",
    name="polling-for-path",
    remedies=(WAIT_IN_BARRIER,),
    promises=(Promise.NFS, Promise.COLLECTIVE),
    incidents=("OLMo",),
)
_LONG: Final = 600  # seconds, as torch.distributed waits in a collective of NCCL


def check(project: Project) -> Iterator[Finding]:
    """Find loops and helpers that wait until a path exists, or until it is deleted."""
    for poll in project.polls():
        limit, until_gone = poll.limit, not poll.is_for_presence
        is_short = limit.seconds is not None and limit.seconds < _LONG
        if not poll.is_for_others or (until_gone and poll.is_for_lock):
            continue
        is_patient = (limit.is_set or poll.is_ordered) and not is_short
        alone = poll.access.evidence < Evidence.LIKELY and (limit.is_set or not poll.is_named)
        yield RULE.finding(
            poll.access,
            f"polling for {code(poll.access.path_source)}: {_end(poll)}",
            witness=_witness(poll, is_short=is_short),
            related=_seen(poll),
            strict=is_patient or alone or until_gone or poll.is_minor,
        )


def _seen(poll: Poll) -> tuple[Related, ...]:
    access, looked = poll.access, poll.looked
    before = () if looked is None else (called(looked, "the file is checked here before"),)
    return (*done_at(access), *before)


def _end(poll: Poll) -> str:
    seconds = poll.limit.seconds
    if not poll.is_for_presence:
        return "a process can miss that it was gone"
    if poll.is_left:
        return "a file left by an earlier run ends the wait"
    return (
        f"each process gives up on its own after {seconds:g} s"
        if seconds
        else "a file that exists may be incomplete"
    )


def _witness(poll: Poll, *, is_short: bool) -> Witness:
    path, seconds = code(poll.access.path_source), poll.limit.seconds or 0
    late = (
        WitnessStep(0, f"is slow to create {path}"),
        WitnessStep(1, f"looks for {path}", f"missing; gives up after {seconds:g} s"),
        WitnessStep(0, f"creates {path} and calls the next collective"),
    )
    gone = (WitnessStep(0, f"deletes {path} and recreates it"), WitnessStep(1, f"looks for {path}", "exists"))
    early = (
        WitnessStep(0, f"begins to create {path}"),
        WitnessStep(1, f"looks for {path}", "exists"),
        WitnessStep(1, f"uses {path}"),
    )
    left = (
        WitnessStep(1, f"looks for {path}", "exists, from an earlier run"),
        WitnessStep(0, f"creates {path}"),
    )
    if not poll.is_for_presence:
        return Witness(gone, f"a process never notices that {path} was gone")
    if poll.is_left:
        return Witness(left, "a process continues before this run has created the file")
    if is_short:
        return Witness(late, "the process that gave up is missing in the next collective")
    return Witness(early, f"a process can use an incomplete or outdated {path}")
