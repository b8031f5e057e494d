"""Lock acquired without a timeout.

If the process that holds the lock hangs or cannot be reached, all other processes wait forever. A
job that should fail within a minute runs until its time limit. If the existence of a file is the
lock, the lock remains after its holder is killed. The kernel releases `flock()` and `fcntl()` locks
when a process ends, but these calls can hang on a network filesystem.

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

Not reported when:
* a timeout is passed when the lock is created or acquired, or the lock is acquired without waiting;
* the library limits the wait by itself;
* only one process of the job acquires the lock;
* the profile is the default one, because only `--profile strict` enables this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, Witness, WitnessStep, code
from fsrace_lint.rules.remedies import LIMIT_THE_WAIT, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR503",
    name="lock-without-timeout",
    cwe=833,
    default_from=None,
    remedies=(TIMEOUT, LIMIT_THE_WAIT),
    promises=(Promise.FLOCK,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find locks that a process can wait for without a limit."""
    for lock in project.locks():
        if not (lock.waits and lock.access.runs_several and lock.access.is_shared):
            continue
        left = "is killed and leaves the lock file" if lock.is_marker else "hangs"
        yield RULE.finding(
            lock.access,
            f"lock {code(lock.named)} is acquired without a timeout",
            witness=Witness(
                (
                    WitnessStep(0, lock.access.source, "gets the lock"),
                    WitnessStep(0, left),
                    WitnessStep(1, lock.access.source, "waits"),
                ),
                f"if the holder {left}, all other processes wait forever",
            ),
            fix=(TIMEOUT if lock.accepts_timeout else LIMIT_THE_WAIT).at(lock.access),
        )
