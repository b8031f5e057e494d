"""Every process writes this same path.

All of them truncate and fill one file at the same time. What is left is one
process's content, a mixture, or half of either, and a reader can meet any of
these while they write.

Bad:
    import torch
    import torch.distributed as dist


    def train(model: torch.nn.Module) -> None:
        dist.init_process_group("gloo")
        torch.save(model.state_dict(), "checkpoint.pt")

Good:
    import torch
    import torch.distributed as dist


    def train(model: torch.nn.Module) -> None:
        dist.init_process_group("gloo")
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), "checkpoint.pt")

Silent when: one process of the job or of each node runs it (by a test here or in all callers), or
runs it before all others, which test whether it is there; a lock is held, or the file is one, or
is locked once it is open; the path holds a rank, a process id or a temporary name; it is only
written after a check that it is missing (FSR102 reports that); it is a scratch file that all
share (FSR205). Only the strict profile reports it where one process of each group runs it, where
the file is appended to or changed in place, and where what the path holds, or that several
processes run it, is not known.

A function that writes the path it is given is not reported where its callers
are known: each of them is judged, and the one without a guard is reported.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import STORAGE, Evidence, Promise, Rule, Witness, WitnessStep, done_at, tested
from fsrace_lint.rules.remedies import WRITING, for_one_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR201",
    name="unguarded-write",
    default_from=Evidence.EVIDENT,
    remedies=WRITING,
    promises=(Promise.TRUNC,),
    settings=STORAGE,
)


def check(project: Project) -> Iterator[Finding]:
    """Find files that every process writes; one call that leads to several of them is one finding."""
    for _, group in itertools.groupby(
        project.instantiated("write", "copy"), key=lambda write: write.call_site
    ):
        writes = [write for write in group if _is_hazard(project, write)]
        plain = [write for write in writes if not _is_strict(write)]
        if writes:
            yield _finding(project, plain or writes)


def _is_hazard(project: Project, write: Access) -> bool:
    reported = write.can_be_made_twice and project.is_created_after_check(write)
    silent = reported or project.is_lock_file(write) or project.is_scratch(write)
    return project.is_raced(write) and not silent


def _is_strict(write: Access) -> bool:
    return write.operation.appends or write.is_one_of_group or not write.certain


def _finding(project: Project, writes: list[Access]) -> Finding:
    write = writes[0]
    probe = project.probe_of(write)
    tests = (
        () if probe is None else tuple(WitnessStep(each, probe.path_source, probe.answer) for each in (0, 1))
    )
    others = len({other.path_source for other in writes}) - 1
    more = "" if not others else f" and {others} more {'file' if others == 1 else 'files'}"
    return RULE.finding(
        write,
        f"every process writes {write.path_source}{more}",
        witness=Witness(
            (
                *tests,
                WitnessStep(0, write.display, "truncates the file"),
                WitnessStep(0, "writes its content"),
                WitnessStep(1, write.display, "truncates the file again"),
            ),
            f"{write.path_source} is empty or half written, and the content of process 0 is lost",
        ),
        related=(
            *(() if probe is None else (tested(probe, write),)),
            *dict.fromkeys(place for other in writes for place in done_at(other)),
        ),
        fix=for_one_writer(project, write),
        strict=_is_strict(write),
    )
