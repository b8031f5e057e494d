"""The file of a lock is deleted.

The kernel locks a file, not its name. Who has opened the file before it is
deleted still locks the old one, while the next process creates a new file of that
name and locks that: both hold the lock. An empty file that stays costs nothing.

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

Silent when: the lock is held while the file is there, and deleting it is how its
owner releases it; the code compares the locked file with the one of that name
(`st_ino`, `samestat`); one process of the job or of each node deletes it; the path
belongs to one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import DROP_UNLINK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR502",
    name="lock-file-deleted",
    cwe=667,
    remedies=(DROP_UNLINK,),
    promises=(
        Promise.FLOCK,
        Promise.OPEN,
    ),
    incidents=("WebDataset",),
)


def check(project: Project) -> Iterator[Finding]:
    """Find deletes of files that processes lock."""
    for lock, delete in project.deleted_locks():
        if not (delete.is_shared and delete.runs_several) or delete.is_serialized:
            continue
        yield RULE.finding(
            delete,
            f"a process deletes the lock file {delete.path_source} while another may hold it",
            witness=Witness(
                (
                    WitnessStep(0, "releases the lock"),
                    WitnessStep(1, lock.access.source, "locks the file"),
                    WitnessStep(0, delete.display, "deletes the file that process 1 has locked"),
                    WitnessStep(0, lock.access.source, "creates a new file and locks that"),
                ),
                "process 0 and process 1 both hold the lock",
            ),
            related=[Related(lock.access.place, "locked here")],
        )
