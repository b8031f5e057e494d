"""Several processes share the name of a scratch file.

A file that is written to be renamed or deleted soon, such as `model.pt.tmp`, has the
same name in every process. They truncate each other's file; one renames what another
has half written, and the slower one finds nothing to rename.

Bad:
    import os

    import torch.distributed as dist


    def store(text: str) -> None:
        dist.barrier()
        with open("result.txt.tmp", "w") as stream:
            stream.write(text)
        os.replace("result.txt.tmp", "result.txt")

Good:
    import os
    import tempfile

    import torch.distributed as dist


    def store(text: str) -> None:
        dist.barrier()
        with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as stream:
            stream.write(text)
        os.replace(stream.name, "result.txt")

Silent when: one process of the job or of each node runs it; a lock is held; the name
holds a rank or is made by `tempfile` or `uuid`. Only the strict profile reports it
where neither that several processes run it is evident, nor a test for what it becomes
shows a cache, where the path could not be followed (unless what is written is deleted again),
and where a process id is all that differs: on a disk that nodes share, two can have one id.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Place, Promise, Related, Rule, Witness, WitnessStep, done_at
from fsrace_lint.rules.remedies import MKSTEMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR205",
    name="fixed-temp-name",
    cwe=377,
    remedies=(MKSTEMP,),
    promises=(
        Promise.TRUNC,
        Promise.RENAME,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find scratch files and folders that several processes share."""
    made = project.instantiated("write", "copy", "download", "mkdir")
    for _, group in itertools.groupby(made, key=lambda access: access.call_site):
        found = next((access for access in group if _is_shared(project, access)), None)
        if found is not None:
            yield _finding(project, found)


def _is_shared(project: Project, access: Access) -> bool:
    if _is_told_apart_by_pid(project, access):
        return True
    if access.op == "mkdir":
        return (
            access.is_contended and project.is_scratch(access) and project.deleted_later(access) is not None
        )
    if access.op == "download" and project.renamed_later(access) is None:
        return False
    return project.is_raced(access) and project.is_scratch(access)


def _is_told_apart_by_pid(project: Project, access: Access) -> bool:
    pid = project.origins(access) == {"pid"} and not project.is_node_local(access.path)
    return pid and access.runs_several and not access.locked and project.renamed_later(access) is not None


def _finding(project: Project, access: Access) -> Finding:
    used = project.renamed_later(access) or project.deleted_later(access)
    by_pid = _is_told_apart_by_pid(project, access)
    named = access.certain or (access.op == "write" and project.deleted_later(access) is not None)
    sure = project.is_for_a_cache(access) or (named and access.evidence is Evidence.EVIDENT)
    who = "processes of two hosts with one id" if by_pid else "all processes"
    use, fails = (
        ("goes on with it", "") if used is None else (used.display, f", which fails in {used.callee}")
    )
    return RULE.finding(
        access,
        f"{who} share the scratch name {access.path_source}",
        witness=Witness(
            (
                WitnessStep(0, access.display, "done"),
                WitnessStep(1, access.display, "begins anew, in the same place"),
                WitnessStep(0, use),
            ),
            f"process 0 has what process 1 has half done{fails}",
        ),
        related=(
            *(() if used is None else (Related(Place(used.file, used.span), "used up here"), *done_at(used))),
            *done_at(access),
        ),
        strict=by_pid or not sure or access.operation.appends or access.is_one_of_group,
    )
