"""File read after a separate existence check while other code deletes it.

A process finds a file, by a check or in a listing, and then opens it. In between, other code of
this project deletes or renames the file: it rotates checkpoints, cleans a cache, or claims a shard.
The reader fails with `FileNotFoundError`. The same happens if a process lists a directory and then
gets the size or the age of each file.

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

Not reported when:
* `FileNotFoundError`, `OSError`, or `Exception` is caught or suppressed;
* no other code of the project deletes or renames the file;
* a lock is held;
* only one process reads the file, or one process reads it before all others;
* the path is private to the process;
* the profile is the default one, because only `--profile strict` enables this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep, code
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
    """Find reads of files that another process can delete or move after a check or a listing."""
    for vanishing in project.vanishing():
        read, seen = vanishing.access, vanishing.seen
        if not read.is_contended or read.is_serialized or read.tolerates("FileNotFoundError"):
            continue
        yield RULE.finding(
            read,
            f"{code(read.path_source)} is read after a separate existence check, while others delete it",
            witness=Witness(
                (
                    WitnessStep(0, seen.path_source, "finds the file"),
                    WitnessStep(1, vanishing.removal.path_source, "done"),
                    WitnessStep(0, read.display, "FileNotFoundError"),
                ),
                "the reader fails with `FileNotFoundError`",
            ),
            related=[
                Related(vanishing.seen_at, "found here"),
                Related(vanishing.removal.place, "deleted or moved here"),
            ],
        )
