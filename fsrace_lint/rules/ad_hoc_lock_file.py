"""Hand-written lock file with a separate existence check.

Two processes can both find no lock file. Both create it, and each one continues as if it held the
lock. The first one to finish deletes the lock of the other. A process that is killed leaves its
lock file, and all later processes wait for it.

Bad:
    import os
    import time


    def build(path: str) -> None:
        lock = path + ".lock"
        while os.path.exists(lock):
            time.sleep(1)
        open(lock, "w").close()
        try:
            compile_into(path)
        finally:
            os.remove(lock)

Good:
    from filelock import FileLock


    def build(path: str) -> None:
        with FileLock(path + ".lock", timeout=600):
            compile_into(path)

Not reported when:
* the call that creates the file fails if the file exists (`"x"`, `O_EXCL`, `os.mkdir()`,
  `os.link()`);
* the code locks the file in the kernel afterwards (`flock()`);
* a lock is held;
* only one process of the job runs the call;
* the path is private to the process;
* no code deletes the file, unless you pass `--profile strict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    Evidence,
    Promise,
    Related,
    Rule,
    Witness,
    WitnessStep,
    created_after_check,
    locked_here,
)
from fsrace_lint.rules.remedies import FILELOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR501",
    name="ad-hoc-lock-file",
    cwe=367,
    default_from=Evidence.NONE,  # a lock shows that multiple processes run the code
    remedies=(FILELOCK,),
    promises=(
        Promise.EXCL,
        Promise.FLOCK,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find lock files that two processes can both create."""
    for claim in project.claims():
        create = claim.access
        if not create.is_contended or create.is_serialized or project.locks_what_it_opens(create):
            continue
        asked = claim.asked_text
        yield RULE.finding(
            create,
            created_after_check("lock file", create),
            witness=Witness(
                (
                    WitnessStep(0, asked, "no lock"),
                    WitnessStep(1, asked, "no lock"),
                    WitnessStep(0, create.display, "has the lock"),
                    WitnessStep(1, create.display, "has the lock too"),
                ),
                "two processes hold the lock at the same time",
            ),
            related=(
                Related(claim.place, "multiple processes can find no lock file"),
                *locked_here(create, create),
            ),
            fix=FILELOCK.at(create, claim.place.span),
            strict=not claim.is_released,
        )
