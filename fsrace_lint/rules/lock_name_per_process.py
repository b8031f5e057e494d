"""Lock file name differs between processes.

The name of the lock file contains the process ID, the rank, or a random or unstable number. Every
process acquires a lock of its own at once, and none of them excludes another. `hash()` of a string
is such a number, because each interpreter salts it differently.

Bad:
    import os

    from filelock import FileLock


    def prepare(path: str) -> None:
        with FileLock(f"/tmp/{hash(path)}.lock", timeout=60):
            os.makedirs(path, exist_ok=True)

Good:
    import hashlib
    import os

    from filelock import FileLock


    def prepare(path: str) -> None:
        digest = hashlib.sha256(path.encode()).hexdigest()
        with FileLock(f"/tmp/{digest}.lock", timeout=60):
            os.makedirs(path, exist_ok=True)

Not reported when:
* the files that the locked code accesses are private to the process too;
* the name differs only by the node, or by the *local rank* (the number of a process within its
  node);
* nothing is known to run while the lock is held, unless you pass `--profile strict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, locked_here
from fsrace_lint.rules.remedies import ONE_LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.model import Lock
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR505",
    name="lock-name-per-process",
    cwe=667,
    default_from=Evidence.NONE,  # a lock shows that multiple processes run the code
    remedies=(ONE_LOCK_NAME,),
    promises=(
        Promise.FLOCK,
        Promise.HASH,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find locks whose names differ between processes, although they protect shared files."""
    for lock in project.locks():
        if not lock.is_private:
            continue
        guarded = list(project.guarded(lock))
        shared = [access for access in guarded if access.is_shared]
        if guarded and not shared:
            continue
        yield RULE.finding(
            lock.access,
            f"lock file {code(lock.access.path_source)} differs between processes, so it excludes no process",
            witness=_witness(lock, shared[0].display if shared else "runs the locked code"),
            related=locked_here(lock.access, lock.access),
            strict=not shared,
        )


def _witness(lock: Lock, operation: str) -> Witness:
    return Witness(
        (
            WitnessStep(0, lock.access.source, "locks its own file"),
            WitnessStep(1, lock.access.source, "locks another file"),
            WitnessStep(0, operation),
            WitnessStep(1, operation),
        ),
        "multiple processes run the locked code at the same time",
    )
