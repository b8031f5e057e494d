"""A file is read because it was there a moment ago.

Another process deletes or renames it in between, with code of this very project:
it rotates checkpoints, cleans a cache, claims the next shard. The reader then dies
with FileNotFoundError. To list a folder and then ask each file for its size or
its age is the same mistake.

Bad:
    import os
    from pathlib import Path


    def newest(folder: str) -> str:
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
        return max(files, key=os.path.getmtime)


    def rotate(folder: str, keep: int) -> None:
        for name in sorted(os.listdir(folder))[:-keep]:
            Path(folder, name).unlink(missing_ok=True)

Good:
    import os
    from pathlib import Path


    def newest(folder: str) -> str:
        files = [os.path.join(folder, name) for name in os.listdir(folder)]
        return max(files, key=age)


    def age(file: str) -> float:
        try:
            return os.path.getmtime(file)
        except FileNotFoundError:
            return 0


    def rotate(folder: str, keep: int) -> None:
        for name in sorted(os.listdir(folder))[:-keep]:
            Path(folder, name).unlink(missing_ok=True)

Silent when: FileNotFoundError, OSError or Exception is handled; nothing in the
project takes such a file away; a lock is held; one process of the job reads it; the
path belongs to one process. Only the strict profile reports this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import READ_AND_HANDLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR104",
    name="check-then-read",
    cwe=367,
    default_from=None,
    remedies=(READ_AND_HANDLE,),
    promises=(
        Promise.UNLINK,
        Promise.RENAME,
        Promise.NFS,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find reads of what another process can take away after it was seen."""
    for vanishing in project.vanishing():
        read, seen = vanishing.access, vanishing.seen
        if not read.is_contended or read.is_serialized or read.tolerates("FileNotFoundError"):
            continue
        yield RULE.finding(
            read,
            f"another process can take {read.path_source} away after {seen.path_source} has seen it",
            witness=Witness(
                (
                    WitnessStep(0, seen.path_source, "sees the file"),
                    WitnessStep(1, vanishing.removal.path_source, "takes it away"),
                    WitnessStep(0, read.display, "FileNotFoundError"),
                ),
                "process 0 dies with FileNotFoundError",
            ),
            related=[
                Related(vanishing.seen_at, "seen here"),
                Related(vanishing.removal.place, "taken away here"),
            ],
        )
