"""Check is made before the lock is acquired.

All processes find the file missing, and wait for the lock. Each process acquires the lock in turn
and repeats the work. It overwrites the result of the first process, which other code may already
use.

Bad:
    import os
    import urllib.request

    from filelock import FileLock


    def fetch(url: str, path: str) -> None:
        if not os.path.exists(path):
            with FileLock(path + ".lock", timeout=600):
                urllib.request.urlretrieve(url, path)

Good:
    import os
    import urllib.request

    from filelock import FileLock


    def fetch(url: str, path: str) -> None:
        with FileLock(path + ".lock", timeout=600):
            if not os.path.exists(path):
                urllib.request.urlretrieve(url, path)

Not reported when:
* the code, or a function that it calls, checks the path again while it holds the lock;
* repeating the work does no harm (`exist_ok=True`, a complete file that is renamed into place, an
  appended line);
* only one process per job, or one per node, runs the code;
* the path is private to the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    Evidence,
    Promise,
    Rule,
    Witness,
    WitnessStep,
    callee_of,
    code,
    locked_here,
    tested,
)
from fsrace_lint.rules.remedies import CHECK_IN_LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR504",
    name="check-outside-lock",
    cwe=367,
    default_from=Evidence.NONE,  # a lock shows that multiple processes run the code
    remedies=(CHECK_IN_LOCK,),
    promises=(Promise.FLOCK,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find work under a lock that depends on a check before the lock."""
    for lock, probe, operation in project.tested_before_locked():
        if not lock.access.is_contended or lock.access.is_serialized:
            continue
        yield RULE.finding(
            operation,
            f"{code(probe.path_source)} is checked before the lock is acquired, "
            f"so every waiting process repeats {callee_of(operation)}",
            witness=Witness(
                (
                    WitnessStep(0, probe.path_source, probe.answer),
                    WitnessStep(1, probe.path_source, probe.answer),
                    WitnessStep(0, lock.access.source, "gets the lock"),
                    WitnessStep(0, operation.display, "done"),
                    WitnessStep(1, lock.access.source, "gets the lock"),
                    WitnessStep(1, operation.display, "repeats it"),
                ),
                "a waiting process replaces the result while another one uses it",
            ),
            fix=CHECK_IN_LOCK.at(operation, probe.span),
            related=(
                tested(probe, operation),
                *locked_here(lock.access, operation, "the lock is acquired here"),
            ),
        )
