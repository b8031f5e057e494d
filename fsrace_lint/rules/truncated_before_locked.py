"""File truncated before the lock is acquired.

`open(path, "w")` truncates the file at once, before the lock is acquired. A process that holds the
lock, and reads or writes the file, loses its content. Nothing goes wrong while only one process
uses the file, so tests do not show it.

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

Not reported when:
* nothing is written to the file, or its name says that it is only a lock;
* only one process of the job writes the file;
* another lock is held around the code;
* the path is private to the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, code, locked_here
from fsrace_lint.rules.remedies import LOCK_THEN_TRUNCATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR506",
    name="truncated-before-locked",
    cwe=367,
    default_from=Evidence.NONE,  # a lock shows that multiple processes run the code
    remedies=(LOCK_THEN_TRUNCATE,),
    promises=(
        Promise.TRUNC,
        Promise.FLOCK,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find files that are truncated when they are opened, and locked afterwards."""
    for lock, opened in project.emptied_before_locked():
        if not opened.is_contended:
            continue
        yield RULE.finding(
            opened,
            f"{code(opened.path_source)} is truncated before it is locked",
            witness=Witness(
                (
                    WitnessStep(0, lock.access.source, "holds the lock"),
                    WitnessStep(0, "writes its content"),
                    WitnessStep(1, opened.display, "truncates the file without the lock"),
                ),
                "what another process wrote while it held the lock is lost",
            ),
            related=locked_here(lock.access, opened, "locked here"),
        )
