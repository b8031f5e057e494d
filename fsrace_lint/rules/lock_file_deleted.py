"""Lock file deleted.

The kernel locks a file, not its name. A process that opened the file before the deletion still
locks the old file. The next process creates a new file with the same name and locks that one, so
both hold the lock. An empty lock file that remains costs nothing.

Bad:
    import os

    from filelock import FileLock


    def export(model, path: str) -> None:
        lock = path + ".lock"
        with FileLock(lock, timeout=600):
            model.export(path)
        os.remove(lock)

Good:
    from filelock import FileLock


    def export(model, path: str) -> None:
        lock = path + ".lock"
        with FileLock(lock, timeout=600):
            model.export(path)

Not reported when:
* the lock is held as long as the file exists, and its owner deletes the file to release it;
* the code checks that the locked file is still the file with that name (`st_ino`, `samestat()`);
* only one process per job, or one per node, deletes the file;
* the path is private to the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, locked_here
from fsrace_lint.rules.remedies import DROP_UNLINK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR502",
    name="lock-file-deleted",
    cwe=667,
    default_from=Evidence.NONE,  # a lock shows that multiple processes run the code
    remedies=(DROP_UNLINK,),
    promises=(
        Promise.FLOCK,
        Promise.OPEN,
    ),
    incidents=("WebDataset",),
)


def check(project: Project) -> Iterator[Finding]:
    """Find deletions of files that processes lock."""
    for lock, delete in project.deleted_locks():
        if not (delete.is_shared and delete.runs_several) or delete.is_serialized:
            continue
        yield RULE.finding(
            delete,
            f"lock file {code(delete.path_source)} is deleted while another process may hold the lock",
            witness=Witness(
                (
                    WitnessStep(0, "releases the lock"),
                    WitnessStep(1, lock.access.source, "locks the file"),
                    WitnessStep(0, delete.display, "deletes the file that process 1 has locked"),
                    WitnessStep(0, lock.access.source, "creates a new file and locks that"),
                ),
                "two processes hold the lock at the same time",
            ),
            related=locked_here(lock.access, delete, "locked here"),
        )
