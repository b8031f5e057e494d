"""A file that is read back is overwritten in place.

A process that is killed before it is filled again leaves half of it under the name that the next run
reads; who reads it meanwhile finds half too. A link that is deleted to be made anew is missing.

Bad:
    import torch
    import torch.distributed as dist


    def save(state: dict[str, torch.Tensor]) -> None:
        if dist.get_rank() == 0:
            torch.save(state, "checkpoints/latest.pt")

Good:
    import os

    import torch
    import torch.distributed as dist


    def save(state: dict[str, torch.Tensor]) -> None:
        if dist.get_rank() == 0:
            torch.save(state, "checkpoints/latest.pt.tmp")
            os.replace("checkpoints/latest.pt.tmp", "checkpoints/latest.pt")

Silent when: it is renamed afterwards, or its name says that it is temporary; it is appended to. By default
names are reported that point to where to go on (`latest`) or hold a state (`status`), no step or hash, and
what a test, under the same lock if any, takes for whole in evidently several processes (where all write,
FSR102 tells it); in the strict profile also checkpoints, indexes, and scripts of one process.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, done_at, related
from fsrace_lint.rules.remedies import ATOMIC_WRITE, REPLACE_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR204",
    name="non-atomic-write",
    remedies=(ATOMIC_WRITE, REPLACE_AT_ONCE),
    promises=(
        Promise.TRUNC,
        Promise.RENAME,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find files that are overwritten in place and read back, and paths that are taken away and made anew."""
    for _, group in itertools.groupby(project.written_in_place(), key=lambda write: write.call_site):
        torn = [project.shown_by_one(write) for write in group if _is_trusted(project, write)]
        if torn:
            yield _overwritten(project, min(torn, key=lambda write: _is_strict(project, write)))
    for gone, made in project.made_anew():
        yield _made_anew(project, gone, made)


def _is_trusted(project: Project, write: Access) -> bool:
    """Tell whether a reader takes it for whole, by its name or as it is there; not what all write at once."""
    if write.op == "write" and (project.is_surely_raced(write) or project.is_lock_file(write)):
        return False
    name, skipped = project.name_of(write), project.probe_of_itself(write)
    if skipped is not None:
        return not skipped.refuses
    hinted = name.may_be_of_a_run or (write.op == "copy" and name.hints_checkpoint)
    return not write.locked and (name.may_be_read_back or name.is_read_back or hinted)


def _is_strict(project: Project, write: Access) -> bool:
    cached = write.evidence is Evidence.EVIDENT and project.probe_of_itself(write) is not None
    cached = cached and not (write.is_contended and project.is_created_after_check(write))
    return project.is_only_locked(write) or not (cached or project.name_of(write).is_read_back)


def _overwritten(project: Project, write: Access) -> Finding:
    read = WitnessStep(1, f"reads {write.path_source}", "nothing, or half of it")
    steps = WitnessStep(0, write.display, "empties the file"), read, WitnessStep(0, "is killed")
    return RULE.finding(
        write,
        f"{write.path_source} is overwritten in place, and a crash or a reader meanwhile finds half of it",
        witness=Witness(steps, f"{write.path_source} is half written, and what it held before is lost"),
        related=done_at(write),
        fix=ATOMIC_WRITE.at(write),
        strict=_is_strict(project, write),
    )


def _made_anew(project: Project, gone: Access, made: Access) -> Finding:
    steps = (
        WitnessStep(0, gone.display, "done"),
        WitnessStep(1, f"reads {gone.path_source}", "nothing"),
        WitnessStep(0, made.display),
    )
    return RULE.finding(
        gone,
        f"{gone.path_source} is taken away before it is made anew, "
        "and a crash or a reader in between finds none",
        witness=Witness(
            steps, f"process 1 finds no {gone.path_source}; after a crash in between, nobody does"
        ),
        related=[related(made, "made anew here")],
        fix=REPLACE_AT_ONCE.at(gone),
        strict=not project.name_of(gone).is_read_back,
    )
