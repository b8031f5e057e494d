"""Each process locks a file of its own.

The name of the lock holds its process id, its rank, a random or an unstable
number: something that differs from process to process. All of them get their lock at
once, and none keeps another out. `hash()` of text is such a number: each
interpreter salts it anew.

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

Silent when: what is done under the lock is done to the process's own files too;
the name holds only the local rank or the node. Where nothing is known to
be done under the lock, only the strict profile reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, Witness, WitnessStep
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
    remedies=(ONE_LOCK_NAME,),
    promises=(
        Promise.FLOCK,
        Promise.HASH,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find locks whose names differ from process to process, though what they guard is shared."""
    for lock in project.locks():
        if not lock.is_private:
            continue
        guarded = list(project.guarded(lock))
        shared = [access for access in guarded if access.is_shared]
        if guarded and not shared:
            continue
        yield RULE.finding(
            lock.access,
            f"the lock {lock.access.path_source} keeps no process out, because each has another name for it",
            witness=_witness(lock, shared[0].display if shared else "does what the lock is for"),
            strict=not shared,
        )


def _witness(lock: Lock, operation: str) -> Witness:
    return Witness(
        (
            WitnessStep(0, lock.access.source, "locks a file of its own"),
            WitnessStep(1, lock.access.source, "locks another file"),
            WitnessStep(0, operation),
            WitnessStep(1, operation),
        ),
        "both hold a lock and do it at once",
    )
