"""The main process makes a path on its own node, and all nodes look for it.

There is one process with rank 0 in the whole job. What it puts into `/tmp`, or on
another disk of its node, is there for the processes of that node alone: those of
the other nodes find nothing, or what an earlier job left, and die with
FileNotFoundError. On one node nobody sees it.

Bad:
    import torch
    import torch.distributed as dist


    def share(state: dict) -> dict:
        if dist.get_rank() == 0:
            torch.save(state, "/tmp/weights.pt")
        dist.barrier()
        return torch.load("/tmp/weights.pt")

Good:
    import os

    import torch
    import torch.distributed as dist


    def share(state: dict, shared: str) -> dict:
        if dist.get_rank() == 0:
            torch.save(state, os.path.join(shared, "weights.pt"))
        dist.barrier()
        return torch.load(os.path.join(shared, "weights.pt"))

Silent when: only the main process uses it; processes of other nodes make it too;
a call in the project starts the processes of the job, which are then on one node,
and no setting says otherwise. What nodes have for themselves are `/tmp`, `$TMPDIR`
and the like, `local-paths`, and everything with `filesystem = "local"`; what these
two name is also reported where the main process only goes first, and the others
come after it: on another node they all come at once. The strict profile reports
caches, data and what is downloaded also where nobody says which it is, and the path
of a new temporary file that is sent to processes of other nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Rule, Step, Witness, done_at, one_per_call, pointed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.findings import Finding
    from fsrace_lint.project.elsewhere import Absence
    from fsrace_lint.project.model import Site
    from fsrace_lint.project.queries import Project

RULE = Rule(code="FSR406", name="global-guard-on-local-path")


def check(project: Project) -> Iterator[Finding]:
    """Find what one process of the job makes where only its node has it."""
    absences = project.absences()
    yield from one_per_call(_together(each) if each.is_first else _missing(each) for each in absences)
    yield from map(_sent, project.sent())


def _sent(site: Site) -> Finding:
    return RULE.finding(
        site,
        f"{site.spelled} lies on the node of the process that made it, and is sent to those of all nodes",
        witness=Witness(
            (
                Step(0, f"makes {site.spelled} on node 0"),
                Step(0, site.written, "sends the path"),
                Step(1, f"uses {site.spelled} on node 1", "FileNotFoundError"),
            ),
            "process 1 does not find it, on the disk of node 1",
        ),
        strict=True,
    )


def _missing(absence: Absence) -> Finding:
    site, use = absence.site, absence.use
    where = "on its own node" if absence.is_known else "perhaps on its own node"
    return RULE.finding(
        site,
        f"only the main process makes {site.spelled}, {where}, and those of other nodes look for it",
        witness=Witness(
            (
                Step(0, "is the main process, on node 0"),
                Step(1, "is on node 1"),
                Step(0, site.told, "done, on the disk of node 0"),
                Step(1, use.told, "FileNotFoundError"),
            ),
            "process 1 does not find it, on the disk of node 1",
        ),
        related=[pointed(use, "processes of all nodes use it here")],
        strict=not absence.is_known,
    )


def _together(absence: Absence) -> Finding:
    site, has = absence.site, "has" if absence.is_known else "may have"
    return RULE.finding(
        site,
        f"the main process goes first, but every node {has} its own {site.spelled}, where all come at once",
        witness=Witness(
            (
                Step(0, "is on node 1, and waits for the main process, on node 0"),
                Step(1, "is on node 1, and waits for the main process, on node 0"),
                Step(0, site.told, "begins"),
                Step(1, site.told, "begins too"),
            ),
            f"processes 0 and 1 spoil {site.spelled} for each other",
        ),
        related=done_at(site),
        strict=not absence.is_known,
    )
