"""A directory is created only after a check that it is missing.

Two processes can both find it missing. One creates it, and the slower one dies
with FileExistsError, usually on the first launch and never again. A process
that starts later, with the directory in place, sees nothing of it: that is why
this survives every test on one machine.

Bad:
    import os


    def prepare(out: str) -> None:
        if not os.path.isdir(out):
            os.makedirs(out)

Good:
    import os


    def prepare(out: str) -> None:
        os.makedirs(out, exist_ok=True)

Fix: `exist-ok` (safe where the test asks whether this path, or what it lies in, is
there, and the `if` holds nothing else) passes `exist_ok=True`. `os.mkdir`, which has
no such flag, becomes `Path(…).mkdir(exist_ok=True)`, or stands in a `try` that accepts
FileExistsError for a directory: both make one level as before. A check for a directory
goes. One that asks `exists` stays: it is also true of a file, which `makedirs` refuses.

Silent when: the call has `exist_ok=True`; FileExistsError, OSError or Exception is handled or suppressed;
one process of the job runs it, or runs it before all others (`main_process_first`); a lock is held; the path
belongs to one process; the branch for an existing path raises, so that failing is what the author wants,
unless the processes of one job evidently run it, of which the slower refuse what the first one made. In a
script that one process runs, only the strict profile reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.rules.base import (
    Applicability,
    Evidence,
    Promise,
    Rule,
    check_then_act_witness,
    double_create_witness,
    tested,
)
from fsrace_lint.rules.remedies import DECIDE_ON_MAIN, EXIST_OK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR101",
    name="check-then-mkdir",
    cwe=367,
    promises=(Promise.MKDIR,),
    incidents=("SageMaker training toolkit",),
)


def check(project: Project) -> Iterator[Finding]:
    """Find directories that two processes can both find missing."""
    for probe, mkdir in project.probe_then("mkdir", absent=True):
        if not mkdir.is_contended or mkdir.is_serialized or mkdir.operation.tree:
            continue
        if probe.refuses and _is_refused(project, probe, mkdir):
            yield _refused(probe, mkdir)
        elif not probe.refuses and not mkdir.tolerates("FileExistsError"):
            yield RULE.finding(
                mkdir,
                f"another process can create {mkdir.path_source} after the check on line {probe.span.line}",
                witness=check_then_act_witness(probe, mkdir, "FileExistsError"),
                related=[tested(probe, mkdir)],
                fix=msgspec.structs.replace(EXIST_OK, applicability=_applicability(probe, mkdir)).at(
                    mkdir, probe.span if probe.is_whole_test else None
                ),
            )


def _is_refused(project: Project, probe: ExistenceCheck, mkdir: Access) -> bool:
    """Tell whether the processes of one job, which do not meet in between, refuse what one of them made."""
    asked = probe.asks_presence and probe.is_implied and probe.path == mkdir.path
    by_all = mkdir.evidence is Evidence.EVIDENT and not mkdir.is_one_of_group
    return (
        asked
        and by_all
        and not (project.is_synchronized_between(probe, mkdir) or project.comes_in_order(mkdir))
    )


def _refused(probe: ExistenceCheck, mkdir: Access) -> Finding:
    return RULE.finding(
        mkdir,
        f"a process that comes later refuses {mkdir.path_source}, which another one has created",
        witness=double_create_witness(probe, mkdir),
        related=[tested(probe, mkdir)],
        fix=DECIDE_ON_MAIN.at(mkdir),
    )


def _applicability(probe: ExistenceCheck, mkdir: Access) -> Applicability:
    """Safe where one process cannot tell: the test asks for this, and nothing else depends on it.

    That a file in it is missing says nothing of the directory, which can be there.
    """
    told = mkdir.path is not None and mkdir.path.is_within(probe.path)
    exact = told and probe.guards_only_the_site and probe.is_implied and probe.asks_presence
    return Applicability.SAFE if exact and mkdir.is_surely_a_path else Applicability.UNSAFE
