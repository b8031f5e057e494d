"""A lock is waited for without a limit.

When the process that holds it hangs or cannot be reached, all others wait for
ever, and a job that should have failed in a minute burns its whole time slot. A
lock that is held while its file is there outlives a process that was killed. A
kernel's lock goes with its process, but its calls can hang on a network
filesystem.

Bad:
    from filelock import FileLock


    def store(path: str, text: str) -> None:
        with FileLock(path + ".lock"):
            with open(path, "a") as stream:
                stream.write(text)

Good:
    from filelock import FileLock


    def store(path: str, text: str) -> None:
        with FileLock(path + ".lock", timeout=600):
            with open(path, "a") as stream:
                stream.write(text)

Silent when: the lock has a timeout, or is tried without waiting; its object is
acquired with a timeout; the library limits the wait by itself; one process of
the job takes it. Only the strict profile reports this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR503",
    name="lock-without-timeout",
    cwe=833,
    default_from=None,
    remedies=(TIMEOUT,),
    promises=(Promise.FLOCK,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find locks that a process can wait for without end."""
    for lock in project.locks():
        if not (lock.waits and lock.access.runs_several and lock.access.is_shared):
            continue
        left = "is killed and leaves its file" if lock.is_marker else "hangs"
        yield RULE.finding(
            lock.access,
            f"a process waits for the lock {lock.named} for ever if the one that holds it {left}",
            witness=Witness(
                (
                    WitnessStep(0, lock.access.source, "gets the lock"),
                    WitnessStep(0, left),
                    WitnessStep(1, lock.access.source, "waits"),
                ),
                "process 1 and all others wait for ever",
            ),
        )
