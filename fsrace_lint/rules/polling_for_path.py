"""Processes wait for a path by looking for it again and again.

That something of this name is there says neither that it is whole nor that it is
new: they go on with half a file, or with the one that an earlier run left. On a
network filesystem the answer can be minutes old. If the process that makes it
dies, those that wait do so for ever, or give up one by one, each by its own clock,
and leave the others in the next collective. A barrier orders what a poll guesses.

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

Silent when: each process waits for a path of its own; what is waited for is that a
lock file goes away. Only the strict profile reports it where nothing shows that
several processes run it, where one process waits, where it waits for a minute or
more or nobody knows how long, as jobs do that hand over to each other, where the
processes met before, so that only the view of a filesystem can lag, and where it
waits until a path is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import Evidence, Rule, Step, Witness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.findings import Finding
    from fsrace_lint.project.polls import Poll
    from fsrace_lint.project.queries import Project

RULE = Rule(code="FSR407", name="polling-for-path", default_from=Evidence.EVIDENT)

_LONG: Final = 60


def check(project: Project) -> Iterator[Finding]:
    """Find loops and helpers that wait until a path is there."""
    for poll in project.polls():
        site, limit = poll.site, poll.limit
        if not poll.is_for_others or (not poll.is_for_presence and poll.is_for_lock):
            continue
        short = limit.seconds is not None and limit.seconds < _LONG
        patient = (limit.is_set or poll.is_ordered) and not short
        until = "is there" if poll.is_for_presence else "is gone"
        up_to = f" for up to {limit.seconds:g} s" if limit.seconds is not None else ""
        yield RULE.finding(
            site,
            f"the processes look again and again{up_to} until {site.spelled} {until}, with no order between them",
            witness=_expired(poll) if short else _too_early(poll),
            strict=patient or poll.is_for_one or not poll.is_for_presence,
        )


def _too_early(poll: Poll) -> Witness:
    spelled = poll.site.spelled
    if not poll.is_for_presence:
        return Witness(
            (
                Step(0, f"removes {spelled}"),
                Step(0, f"makes {spelled} again"),
                Step(1, "looks", "it is there"),
            ),
            "process 1 never sees that it was gone, and waits for ever",
        )
    return Witness(
        (
            Step(0, f"begins to make {spelled}"),
            Step(1, "looks", f"{spelled} is there"),
            Step(1, f"goes on and uses {spelled}"),
            Step(0, f"finishes {spelled}"),
        ),
        f"process 1 works with half of {spelled}, as it would with one that an earlier run left",
    )


def _expired(poll: Poll) -> Witness:
    spelled = poll.site.spelled
    return Witness(
        (
            Step(0, f"is slow to make {spelled}"),
            Step(1, "looks", f"{spelled} is not there"),
            Step(1, "gives up", f"after {poll.limit.seconds:g} s"),
            Step(0, f"makes {spelled} and goes on to the next collective"),
        ),
        "process 0 waits there for process 1, which has left",
    )
