"""State file overwritten in place instead of atomically.

The call truncates the file and then writes it. If the process is killed in between, the next run reads a
partial file. A concurrent reader can see the partial file too. Similarly, a link that is deleted and
recreated is missing for a moment. Tests rarely kill a process during a write.

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

The rule reports a file whose name suggests a pointer (`latest`) or a state file (`status`) and contains no
step number or hash. It also reports a cache: a file that the code writes only if the file is missing. If
the process is killed during the write, the next run takes the partial file for complete. By default, a
cache is reported only if multiple processes clearly run the code.

Not reported when:
* the call only appends, or the file is renamed or deleted afterwards, or its name says it is temporary;
* all processes clearly write the file at once (FSR201 reports that, or FSR102 if a check comes first);
* the code raises on purpose if the file exists, or accepts it only with a later file or by its content;
* a lock is held for the write, and the file is not a cache;
* the file is a cache, and a lock is held for the write but not for the check (FSR504 reports that), unless
  you pass `--profile strict`. A lock for both does not help after a crash: the partial file stays;
* the script runs in a single process, unless you pass `--profile strict`;
* the file is a checkpoint or an index whose name suggests neither a pointer nor a state file (`model.pt`),
  unless the function reads the index before it writes it, or you pass `--profile strict`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, done_at, related
from fsrace_lint.rules.remedies import ATOMIC_WRITE, REPLACE_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR204",
    name="non-atomic-write",
    is_crash=True,
    remedies=(ATOMIC_WRITE, REPLACE_AT_ONCE),
    promises=(Promise.TRUNC, Promise.RENAME),
)
_KILLED: Final = WitnessStep(0, "is killed")


def check(project: Project) -> Iterator[Finding]:
    """Find state files that are overwritten in place, and paths that are deleted and recreated."""
    for _, group in itertools.groupby(project.written_in_place(), key=lambda write: write.call_site):
        torn = [project.shown_by_one(write) for write in group if _is_trusted(project, write)]
        if torn:
            yield _overwritten(project, min(torn, key=lambda write: _is_strict(project, write)))
    for gone, made in project.made_anew():
        yield _made_anew(project, gone, made)


def _is_trusted(project: Project, write: Access) -> bool:
    """Return whether readers expect a complete file, because of its name or because it exists."""
    if write.op == "write" and (project.is_surely_raced(write) or project.is_lock_file(write)):
        return False
    if project.deleted_later(write) is not None:
        return False
    name, skipped = project.name_of(write), project.probe_of_itself(write)
    if skipped is not None:
        return not (skipped.refuses or project.is_verified(write)) and project.is_accepted_alone(write)
    hinted = name.may_be_of_a_run or (write.op == "copy" and name.hints_checkpoint)
    return not write.locked and (name.may_be_read_back or name.is_read_back or hinted)


def _is_strict(project: Project, write: Access) -> bool:
    name, cached = project.name_of(write), write.evidence >= Evidence.LIKELY
    cached = cached and project.probe_of_itself(write) is not None
    cached = cached and not (write.is_contended and project.is_created_after_check(write))
    trusted = cached or name.is_read_back or (name.describes and project.is_used_before(write))
    return project.is_only_locked(write) or not trusted


def _overwritten(project: Project, write: Access) -> Finding:
    read = WitnessStep(1, f"reads {code(write.path_source)}", "partial")
    is_new = project.probe_of_itself(write) is not None
    lost = "takes it for complete" if is_new else "finds it, and the old content is lost"
    steps = (WitnessStep(0, write.display, "truncates it"), _KILLED, read)
    return RULE.finding(
        write,
        f"a crash while {code(write.path_source)} is written in place leaves a partial file",
        witness=Witness(steps, f"the next run {lost}"),
        related=done_at(write),
        fix=ATOMIC_WRITE.at(write),
        strict=_is_strict(project, write),
    )


def _made_anew(project: Project, gone: Access, made: Access) -> Finding:
    read = WitnessStep(1, f"reads {code(gone.path_source)}", "nothing")
    return RULE.finding(
        gone,
        f"a crash after {code(gone.path_source)} is deleted, and before it is recreated, leaves nothing",
        witness=Witness((WitnessStep(0, gone.display, "done"), _KILLED, read), "the old content is lost"),
        related=[related(made, "recreated here")],
        fix=REPLACE_AT_ONCE.at(gone),
        strict=not project.name_of(gone).is_read_back,
    )
