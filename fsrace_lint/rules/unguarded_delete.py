"""Every process deletes this same path, or moves it away.

The first one does it, and the others die with FileNotFoundError: when the
staging folder of a checkpoint is renamed on all ranks, say, or when each of them
removes what one of them has written. Worse, a fast process can delete a file
that a slower one has yet to read.

Bad:
    import os

    import torch
    import torch.distributed as dist


    def restore(model: torch.nn.Module) -> None:
        dist.barrier()
        model.load_state_dict(torch.load("before_search.pt"))
        os.remove("before_search.pt")

Good:
    import os

    import torch
    import torch.distributed as dist


    def restore(model: torch.nn.Module) -> None:
        dist.barrier()
        model.load_state_dict(torch.load("before_search.pt"))
        dist.barrier()
        if dist.get_rank() == 0:
            os.remove("before_search.pt")

Silent when: `missing_ok=True` or `ignore_errors=True`; FileNotFoundError, OSError or Exception is
handled or suppressed, or a handler does it and raises; one process of the job or of each node runs it,
or took a file away before; a lock is held; the path belongs to one process, or this process alone
created it; a check for a delete comes before it in the same function, or the folder was listed and
nothing shows that all do it (then see FSR103); the directory is made anew afterwards (FSR203); what is
renamed was written in the same function (FSR201); nothing is known of the path. Only the strict profile
reports it where one process of each group runs it, where a part of the path could not be followed, and
where it is not evident that several processes run it. A function that deletes the path it is given is
judged where it is called.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, done_at
from fsrace_lint.rules.remedies import DELETING, for_delete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR202",
    name="unguarded-delete",
    default_from=Evidence.EVIDENT,
    remedies=DELETING,
    promises=(
        Promise.UNLINK,
        Promise.OPEN,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find what every process deletes or renames; one call that leads to several of them is one finding."""
    elsewhere = {gone.call_site for gone, _ in project.resets()}
    pairs = project.pairs({"write", "create"}, {"delete", "rename"})
    created = {access.call_site: before for before, access in pairs}
    elsewhere |= {call_site for call_site, before in created.items() if before.operation.exclusive}
    elsewhere |= {delete.call_site for _, delete in project.listed_then_deleted()}
    for call_site, group in itertools.groupby(
        project.instantiated("delete", "rename"), key=lambda access: access.call_site
    ):
        found = [] if call_site in elsewhere else [access for access in group if _is_hazard(project, access)]
        plain = [access for access in found if not _is_strict(project, access)]
        if found:
            yield _finding(project, project.shown_by(created.get(call_site), (plain or found)[0]))


def _is_hazard(project: Project, access: Access) -> bool:
    probe = project.probe_where_done(access, absent=False)
    checked = probe is not None and (access.op == "delete" or probe.refuses)
    judged = access.path is not None and not (
        project.made_before(access) or project.is_given_up_after(access)
    )
    return judged and access.is_contended and not access.tolerates("FileNotFoundError") and not checked


def _is_strict(project: Project, access: Access) -> bool:
    return access.is_one_of_group or not (access.certain or project.listing_of(access) is not None)


def _finding(project: Project, access: Access) -> Finding:
    verb = "deletes" if access.op == "delete" else "moves"
    return RULE.finding(
        access,
        f"every process {verb} {access.path_source}, and all but the first fail",
        witness=Witness(
            (WitnessStep(0, access.display, "done"), WitnessStep(1, access.display, "FileNotFoundError")),
            "process 1 dies with FileNotFoundError",
        ),
        related=done_at(access),
        fix=for_delete(project, access),
        strict=_is_strict(project, access),
    )
