"""Temporary file name is the same on every rank.

Temporary files such as `model.pt.tmp` are soon renamed or deleted. If all ranks use one name, they truncate
each other's file, and a rank that renames the file too late fails with `FileNotFoundError`.

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

Not reported when:
* only one process per job, or one per node, runs the call, or a lock is held;
* the name contains the rank, or comes from `tempfile` or `uuid`;
* with the default profile: the name contains the PID, which can be the same on two nodes;
* with the default profile: the file is appended to, or one rank of each group of ranks writes it;
* with the default profile: the file is not a cache, and nothing shows multiple processes;
* with the default profile: part of the path is unknown, and the file is neither a cache nor deleted later.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    Evidence,
    Promise,
    Rule,
    Witness,
    WitnessStep,
    callee_of,
    code,
    done_at,
    many,
    related,
)
from fsrace_lint.rules.remedies import TEMPORARY_FOLDER, UNIQUE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR205",
    name="fixed-temp-name",
    cwe=377,
    is_tentative=True,
    remedies=(UNIQUE_NAME, TEMPORARY_FOLDER),
    promises=(Promise.TRUNC, Promise.RENAME),
)


def check(project: Project) -> Iterator[Finding]:
    """Find temporary files and directories with the same name in multiple processes."""
    made = project.instantiated("write", "copy", "download", "mkdir")
    for _, group in itertools.groupby(made, key=lambda access: access.call_site):
        found = next((access for access in group if _is_shared(project, access)), None)
        if found is not None:
            yield _finding(project, found)


def _is_shared(project: Project, access: Access) -> bool:
    if access.path is None:
        return False
    if _is_told_apart_by_pid(project, access):
        return True
    if access.op == "mkdir":
        temporary = access.is_contended and project.is_scratch(access)
        return temporary and project.deleted_later(access) is not None
    is_final = access.op == "download" and project.renamed_later(access) is None
    return not is_final and project.is_raced(access) and project.is_scratch(access)


def _is_told_apart_by_pid(project: Project, access: Access) -> bool:
    pid = project.origins(access) == {"pid"} and not project.is_node_local(access.path)
    return pid and access.runs_several and not access.locked and project.renamed_later(access) is not None


def _finding(project: Project, access: Access) -> Finding:
    used = project.renamed_later(access) or project.deleted_later(access)
    by_pid = _is_told_apart_by_pid(project, access)
    named = access.certain or (access.op == "write" and project.deleted_later(access) is not None)
    sure = project.is_for_a_cache(access) or (named and access.evidence >= Evidence.LIKELY)
    who = "processes with the same PID on different hosts" if by_pid else f"{many(access)}"
    use = "continues with it" if used is None else used.display
    fails = "" if used is None else f", and {callee_of(used)} fails"
    return RULE.finding(
        access,
        f"{who} use the same temporary name {code(access.path_source)}",
        witness=Witness(
            (
                WitnessStep(0, access.display, "done"),
                WitnessStep(1, access.display, "starts over in the same place"),
                WitnessStep(0, use),
            ),
            f"a process continues with a path that another one is still using{fails}",
        ),
        related=(
            *(() if used is None else (related(used, "moved or deleted here"), *done_at(used))),
            *done_at(access),
        ),
        fix=(TEMPORARY_FOLDER if access.op == "mkdir" else UNIQUE_NAME).at(access),
        strict=by_pid or not sure or access.operation.appends or access.is_one_of_group,
    )
