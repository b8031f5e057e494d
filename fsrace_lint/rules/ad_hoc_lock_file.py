"""A lock file is looked for, and then created.

Two processes can both find that there is no lock file. Both create it, both go
on, and each takes the lock for its own; the first one done deletes the lock of
the other. A process that is killed leaves the file, and all that come later wait
for it.

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

Silent when: creating it fails where it is there (`"x"`, `O_EXCL`, `os.mkdir`,
`os.link`); the kernel locks the file afterwards; a lock is held; one process of
the job runs it; the path belongs to one process. Where nothing deletes the file,
only the strict profile reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import FILELOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR501",
    name="ad-hoc-lock-file",
    cwe=367,
    remedies=(FILELOCK,),
    promises=(
        Promise.EXCL,
        Promise.FLOCK,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find files that stand for a lock, and that two processes can both create."""
    for claim in project.claims():
        create = claim.access
        if not create.is_contended or create.is_serialized or project.locks_what_it_opens(create):
            continue
        asked = claim.asked_text
        yield RULE.finding(
            create,
            f"two processes can both find no {create.path_source}, and both take the lock",
            witness=Witness(
                (
                    WitnessStep(0, asked, "no lock"),
                    WitnessStep(1, asked, "no lock"),
                    WitnessStep(0, create.display, "has the lock"),
                    WitnessStep(1, create.display, "has it too"),
                ),
                "both do at once what the lock was to keep apart",
            ),
            related=[Related(claim.place, "looked for here")],
            fix=FILELOCK.at(create, claim.place.span),
            strict=not claim.is_released,
        )
