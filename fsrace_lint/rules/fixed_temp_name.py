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

from fsrace_lint.rules.base import Evidence, Place, Related, Rule, Witness, WitnessStep, done_at
from fsrace_lint.rules.remedies import MKSTEMP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(code="FSR205", name="fixed-temp-name", cwe=377, remedies=(MKSTEMP,))


def check(project: Project) -> Iterator[Finding]:
    """Find scratch files and folders that several processes share."""
    made = project.instantiated("write", "copy", "download", "mkdir")
    for _, group in itertools.groupby(made, key=lambda site: site.call_site):
        found = next((site for site in group if _is_shared(project, site)), None)
        if found is not None:
            yield _finding(project, found)


def _is_shared(project: Project, site: Access) -> bool:
    if _is_told_apart_by_pid(project, site):
        return True
    if site.operation.op == "mkdir":
        return site.is_contended and project.is_scratch(site) and project.deleted_later(site) is not None
    if site.operation.op == "download" and project.renamed_later(site) is None:
        return False
    return project.is_raced(site) and project.is_scratch(site)


def _is_told_apart_by_pid(project: Project, site: Access) -> bool:
    pid = project.origins(site) == {"pid"} and not project.is_node_local(site.path)
    return pid and site.runs_several and not site.locked and project.renamed_later(site) is not None


def _finding(project: Project, site: Access) -> Finding:
    used = project.renamed_later(site) or project.deleted_later(site)
    by_pid = _is_told_apart_by_pid(project, site)
    named = site.certain or (site.operation.op == "write" and project.deleted_later(site) is not None)
    sure = project.is_for_a_cache(site) or (named and site.evidence is Evidence.EVIDENT)
    who = "processes of two hosts with one id" if by_pid else "all processes"
    use, fails = (
        ("goes on with it", "") if used is None else (used.display, f", which fails in {used.callee}")
    )
    return RULE.finding(
        site,
        f"{who} share the scratch name {site.path_source}",
        witness=Witness(
            (
                WitnessStep(0, site.display, "done"),
                WitnessStep(1, site.display, "begins anew, in the same place"),
                WitnessStep(0, use),
            ),
            f"process 0 has what process 1 has half done{fails}",
        ),
        related=(
            *(() if used is None else (Related(Place(used.file, used.span), "used up here"), *done_at(used))),
            *done_at(site),
        ),
        strict=by_pid or not sure or site.operation.appends or site.is_one_of_group,
    )
