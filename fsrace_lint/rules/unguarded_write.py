"""Every rank writes the same file.

All ranks truncate and write one file at the same time. The file can end up empty, truncated, or with a mix
of data from multiple ranks. A process that reads the file meanwhile can see any of these. A small file
usually ends up correct, so tests do not show the race.

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

If a function receives the path as a parameter and its callers are known, the rule checks its callers
instead. It reports each caller without a rank check.

Not reported when:
* one process per job or node runs the call (rank check here or in all callers);
* one process runs the call before all others, and the other processes check for the file;
* a lock is held, the file is a lock file, or the file is locked after it is opened;
* the path contains the rank, the PID, or a temporary name, or the file stays empty;
* the code first checks whether the file exists (FSR102 reports that);
* the file is a temporary file with one name on all ranks (FSR205 reports that);
* a note: it is not `evident` that ranks are started, except in a package whose functions only its users call;
* a note: nothing suggests that the file is read, neither its name nor a later use of its path;
* with the default profile: one rank of each group of ranks runs the call (`if tp_rank == 0:`);
* with the default profile: the file is appended to, or changed without truncation;
* with the default profile: it is not clear that multiple processes use the same path. If ranks are certainly
  started, a literal file name in an unknown directory counts as the same path.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    STORAGE,
    Confidence,
    Evidence,
    Promise,
    Rule,
    Witness,
    WitnessStep,
    code,
    done_at,
    one,
    tested,
)
from fsrace_lint.rules.remedies import WRITING, for_one_writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR201",
    name="unguarded-write",
    is_tentative=True,
    default_from=Evidence.LIKELY,
    remedies=WRITING,
    promises=(Promise.TRUNC,),
    settings=STORAGE,
)


def check(project: Project) -> Iterator[Finding]:
    """Find files that every process writes; a call that leads to multiple writes is one finding."""
    for _, group in itertools.groupby(
        project.instantiated("write", "copy"), key=lambda write: write.call_site
    ):
        writes = [write for write in group if _is_hazard(project, write)]
        if writes:
            yield _finding(project, [write for write in writes if not _is_strict(write)] or writes)


def _is_hazard(project: Project, write: Access) -> bool:
    if not project.is_raced(write) or (write.can_be_made_twice and project.is_created_after_check(write)):
        return False
    return not (project.is_lock_file(write) or project.is_scratch(write) or project.is_marker(write))


def _is_strict(write: Access) -> bool:
    return write.operation.appends or write.is_one_of_group or not write.is_surely_shared


def _finding(project: Project, writes: list[Access]) -> Finding:
    write, probe = writes[0], project.probe_of(writes[0])
    tests = [WitnessStep(each, probe.path_source, probe.answer) for each in (0, 1)] if probe else []
    found = [tested(probe, write)] if probe else []
    is_started = write.evidence is Evidence.EVIDENT or project.is_called_from_outside(write)
    is_likely = is_started and any(map(project.is_expected, writes))
    others = len({other.path_source for other in writes}) - 1
    more = "" if not others else f" and {others} more {'file' if others == 1 else 'files'}"
    return RULE.finding(
        write,
        f"every {one(write)} writes {code(write.path_source)}{more}",
        witness=Witness(
            (
                *tests,
                WitnessStep(0, write.display, "truncates the file"),
                WitnessStep(0, "writes its content"),
                WitnessStep(1, write.display, "truncates the file again"),
            ),
            "the file can end up empty, truncated, or with a mix of data from multiple processes",
        ),
        related=dict.fromkeys((*found, *(each for w in writes for each in done_at(w)))),
        fix=for_one_writer(project, write),
        strict=_is_strict(write),
        at_most=Confidence.HIGH if is_likely else Confidence.LOW,
    )
