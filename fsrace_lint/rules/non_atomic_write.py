"""A file that is read back is overwritten in place.

It is emptied, then filled. A process that is killed in between, or a machine
that is preempted, leaves half of it under the name that the next run reads; a
process that reads it meanwhile finds half as well. One writer is enough for that,
and the old content is gone already. A link that is deleted and made anew is
missing for a moment, in the same way.

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

Silent when: it is renamed afterwards, or its name says that it is temporary; the
name holds a step, an epoch or a hash, so that nothing is overwritten; it is
appended to; a lock is held. The default profile reports names that point to where
to go on (`latest`, `last`, `best`, `tracker`) or hold a state (`state`, `meta`,
`index`, `status`); the strict profile also other checkpoints, what is found by a
test whether it is there, and scripts that one process runs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Place, Related, Rule, Step, Witness, done_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.findings import Finding
    from fsrace_lint.project.model import Site
    from fsrace_lint.project.queries import Project

RULE = Rule(code="FSR204", name="non-atomic-write")


def check(project: Project) -> Iterator[Finding]:
    """Find files that are overwritten in place and read back, and paths that are taken away and made anew."""
    for _, group in itertools.groupby(project.exposed("write", "copy"), key=lambda write: write.event):
        torn = [write for write in group if _is_in_place(project, write) and _is_trusted(project, write)]
        if torn:
            yield _overwritten(project, min(torn, key=lambda write: not _is_read_back(project, write)))
    for made in project.sites("link", "rename"):
        gone = project.taken_away_before(made)
        if gone is not None and not made.locked and not project.is_own(made):
            yield _made_anew(project, made, gone)


def _is_in_place(project: Project, write: Site) -> bool:
    act = write.act
    whole = act.appends or act.exclusive or act.atomic or act.synchronized or write.locked
    told_already = act.op == "write" and project.is_raced(write) and write.certain
    return not (whole or project.is_own(write) or project.renamed_later(write)) and not (
        told_already and write.evidence is Evidence.EVIDENT
    )


def _is_trusted(project: Project, write: Site) -> bool:
    """Tell whether a reader takes the file for whole: by its name, or because it is there."""
    name, probe = project.name_of(write), project.probe_of(write)
    if name is None or name.is_temporary:
        return False
    tested = probe is not None and probe.absent and probe.path == write.path
    return tested or (not name.is_numbered and (name.is_read_back or name.may_be_read_back))


def _is_read_back(project: Project, site: Site) -> bool:
    name = project.name_of(site)
    return name is not None and name.is_read_back and not name.is_numbered


def _overwritten(project: Project, write: Site) -> Finding:
    return RULE.finding(
        write,
        f"{write.spelled} is overwritten in place, and a crash or a reader meanwhile finds half of it",
        witness=Witness(
            (
                Step(0, write.told, "empties the file"),
                Step(1, f"reads {write.spelled}", "nothing, or half of it"),
                Step(0, "is killed before the rest is written"),
            ),
            f"{write.spelled} is half written, and what it held before is lost",
        ),
        related=done_at(write),
        strict=not _is_read_back(project, write),
    )


def _made_anew(project: Project, made: Site, gone: Site) -> Finding:
    path = gone.spelled
    return RULE.finding(
        made,
        f"{path} is taken away before it is made anew, and a crash or a reader in between finds none",
        witness=Witness(
            (
                Step(0, gone.told, "done"),
                Step(1, f"reads {path}", "FileNotFoundError"),
                Step(0, made.told, "done"),
            ),
            f"process 1 finds no {path}; after a crash in between, nobody does",
        ),
        related=[Related(Place(gone.file, gone.span), "taken away here")],
        strict=not _is_read_back(project, gone),
    )
