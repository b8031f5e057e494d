"""A file is emptied before it is locked.

`open(path, "w")` empties the file at once; the lock comes after that. A process
that holds the lock, and reads or writes the file, loses what is in it.

Bad:
    import fcntl
    import json


    def store(path: str, table: dict) -> None:
        with open(path, "w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            json.dump(table, stream)
            stream.flush()
            fcntl.flock(stream, fcntl.LOCK_UN)

Good:
    import fcntl
    import json


    def store(path: str, table: dict) -> None:
        with open(path, "a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            stream.truncate(0)
            json.dump(table, stream)
            stream.flush()
            fcntl.flock(stream, fcntl.LOCK_UN)

Silent when: nothing is written to the file, or its name says that it is only a
lock; one process of the job writes it; another lock is held around it; the path
belongs to one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import LOCK_THEN_TRUNCATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR506",
    name="truncated-before-locked",
    cwe=367,
    remedies=(LOCK_THEN_TRUNCATE,),
    promises=(
        Promise.TRUNC,
        Promise.FLOCK,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find files that are opened to be written anew, and locked after that."""
    for lock, opened in project.emptied_before_locked():
        if not opened.is_contended:
            continue
        yield RULE.finding(
            opened,
            f"a process empties {opened.path_source} while another holds its lock",
            witness=Witness(
                (
                    WitnessStep(0, lock.access.source, "holds the lock"),
                    WitnessStep(0, "writes its content"),
                    WitnessStep(1, opened.display, "empties the file, without the lock"),
                ),
                f"what process 0 wrote to {opened.path_source} is lost or cut in two",
            ),
            related=[Related(lock.access.place, "locked only here")],
        )
