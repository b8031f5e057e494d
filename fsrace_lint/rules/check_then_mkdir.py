"""Directory created after a separate existence check.

Two processes can both find the directory missing. One of them creates it, and the slower one fails
with `FileExistsError`. This usually happens only on the first launch. Later runs find the
directory, so tests that reuse it never show the race.

Bad:
    import os


    def prepare(out: str) -> None:
        if not os.path.isdir(out):
            os.makedirs(out)

Good:
    import os


    def prepare(out: str) -> None:
        os.makedirs(out, exist_ok=True)

Fix: `exist-ok` passes `exist_ok=True`, and removes the check if the `if` contains only the call.
The fix is safe after an `isdir()` check, or if the function uses the path as a directory: it joins
a name to it, lists it, or takes it from the parent of another path. If a file is at such a path,
the code then fails at the call, and not where it uses the directory. `os.mkdir()` has no such
parameter, so the fix calls `os.makedirs()`, which also creates parents. That is safe only if the
parent is created before. If the `if` also fills the directory, the fix is manual: with `exist_ok=True`
two processes would fill it at once.

Not reported when:
* the call passes `exist_ok=True`;
* `FileExistsError`, `OSError`, or `Exception` is caught or suppressed;
* only one process runs the call, or one process runs it before all others (`main_process_first()`);
* a lock is held;
* the path is private to the process;
* the code raises on purpose if the path exists. If every process of a job runs the code, with no
  barrier between the check and the call, this is still reported: the fastest process creates the
  directory, and the others raise;
* the script runs in a single process, unless you pass `--profile strict`.
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
    code,
    created_after_check,
    double_create_witness,
    tested,
)
from fsrace_lint.rules.remedies import DECIDE_ON_MAIN, EXIST_OK, EXIST_OK_UNCHECKED, FILL_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding, Fix

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
                created_after_check("directory", mkdir),
                witness=check_then_act_witness(probe, mkdir, "FileExistsError"),
                related=[tested(probe, mkdir)],
                fix=_fix(project, probe, mkdir),
                at_most=project.highest_confidence(mkdir),
            )


def _is_refused(project: Project, probe: ExistenceCheck, mkdir: Access) -> bool:
    """Tell whether the processes of one job, which do not meet in between, refuse what one of them made."""
    asked = probe.asks_presence and probe.is_implied and probe.path == mkdir.path and not mkdir.is_repeated
    by_all = mkdir.evidence >= Evidence.LIKELY and not mkdir.is_one_of_group
    return (
        asked
        and by_all
        and not (project.is_synchronized_between(probe, mkdir) or project.comes_in_order(mkdir))
    )


def _refused(probe: ExistenceCheck, mkdir: Access) -> Finding:
    return RULE.finding(
        mkdir,
        f"directory {code(mkdir.path_source)} is refused if another process of the same job has created it",
        witness=double_create_witness(probe, mkdir),
        related=[tested(probe, mkdir)],
        fix=DECIDE_ON_MAIN.at(mkdir),
    )


def _fix(project: Project, probe: ExistenceCheck, mkdir: Access) -> Fix:
    """Safe where one process cannot tell: the test asks for this, and nothing else depends on it.

    That a file in it is missing says nothing of the directory, which can be there. Without the check, the
    call fails on a file at the path, as the code does that uses the path as a directory.
    """
    if not probe.guards_only_the_site and project.is_filled_in_branch(mkdir):
        return FILL_ONCE.at(mkdir)
    told = mkdir.path is not None and mkdir.path.is_within(probe.path)
    exact = told and probe.guards_only_the_site and probe.is_implied and probe.asks_presence
    is_redundant = exact and mkdir.path == probe.path
    fix = (EXIST_OK_UNCHECKED if is_redundant else EXIST_OK).at(mkdir, probe.span if is_redundant else None)
    is_safe = exact and mkdir.is_surely_a_path
    if is_safe and is_redundant and not probe.asks_directory:
        is_safe = project.is_used_as_directory(mkdir)
    if is_safe and mkdir.operation.api == "os.mkdir":
        is_safe = project.has_parent(mkdir)
    return msgspec.structs.replace(fix, applicability=Applicability.SAFE if is_safe else Applicability.UNSAFE)
