"""Every rank deletes or moves the same path.

The first rank succeeds, and all other ranks fail with `FileNotFoundError`. Typical cases are a staging
directory that all ranks rename, and a file that one rank wrote and all ranks delete. A fast rank can also
delete a file before a slower rank has read it.

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

If a function receives the path as a parameter, the rule checks the calls of that function instead.

Not reported when:
* the call passes `missing_ok=True` or `ignore_errors=True`;
* `FileNotFoundError`, `OSError`, or `Exception` is caught or suppressed;
* an exception handler runs the call and then raises;
* only one process per job, or one per node, runs the call;
* an earlier call already lets only one process continue, because it deletes or moves a different file;
* the path is private to the process, or the process created it exclusively (mode `"x"`);
* a lock is held;
* the same function checks whether the path exists before it deletes it (FSR103 reports that);
* the same function raises on purpose if the path is missing, before it moves it;
* the path comes from a listing, and it is not clear that all ranks delete it (FSR103 reports that);
* the directory is recreated afterwards (FSR203 reports that);
* the call renames a file that all ranks wrote in the same function (FSR201 reports that);
* nothing is known about the path;
* with the default profile: one rank of each group of ranks runs the call (`if tp_rank == 0:`);
* with the default profile: part of the path is unknown;
* with the default profile: it is not clear that multiple processes run the call.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, done_at, one
from fsrace_lint.rules.remedies import DELETING, for_delete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR202",
    name="unguarded-delete",
    default_from=Evidence.LIKELY,
    remedies=DELETING,
    promises=(
        Promise.UNLINK,
        Promise.OPEN,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find paths that every process deletes or renames; a call that leads to multiple is one finding."""
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
        f"every {one(access)} {verb} {code(access.path_source)}",
        witness=Witness(
            (WitnessStep(0, access.display, "done"), WitnessStep(1, access.display, "FileNotFoundError")),
            "all but the first process fail with `FileNotFoundError`",
        ),
        related=done_at(access),
        fix=for_delete(project, access),
        strict=_is_strict(project, access),
    )
