"""A process looks whether the work is done, and only then waits for the lock.

All processes find nothing there, and wait. Each of them then gets the lock in its
turn and does the work again, over what the first has made and perhaps already
hands out.

Bad:
    import os
    import urllib.request

    from filelock import FileLock


    def fetch(url: str, path: str) -> None:
        if not os.path.exists(path):
            with FileLock(path + ".lock", timeout=600):
                urllib.request.urlretrieve(url, path)

Good:
    import os
    import urllib.request

    from filelock import FileLock


    def fetch(url: str, path: str) -> None:
        with FileLock(path + ".lock", timeout=600):
            if not os.path.exists(path):
                urllib.request.urlretrieve(url, path)

Silent when: something looks for the path again under the lock, here or in what is
called; the work does no harm when it is done twice (`exist_ok=True`, a whole
file that is renamed into place, an appended line); one process of the job or of
each node runs it; the path belongs to one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Related, Rule, Witness, WitnessStep, tested
from fsrace_lint.rules.remedies import CHECK_IN_LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR504", name="check-outside-lock", cwe=367, remedies=(CHECK_IN_LOCK,), promises=(Promise.FLOCK,)
)


def check(project: Project) -> Iterator[Finding]:
    """Find what is done under a lock because of a test in front of the lock."""
    for lock, probe, operation in project.tested_before_locked():
        if not lock.access.is_contended or lock.access.is_serialized:
            continue
        yield RULE.finding(
            operation,
            f"a process that waited for the lock does {operation.callee} again "
            f"on the word of {probe.path_source}",
            witness=Witness(
                (
                    WitnessStep(0, probe.path_source, probe.answer),
                    WitnessStep(1, probe.path_source, probe.answer),
                    WitnessStep(0, lock.access.source, "gets the lock"),
                    WitnessStep(0, operation.display, "done, and uses it"),
                    WitnessStep(1, lock.access.source, "gets the lock"),
                    WitnessStep(1, operation.display, "does it again"),
                ),
                f"process 1 replaces {operation.path_source} while process 0 uses it",
            ),
            fix=CHECK_IN_LOCK.at(operation, probe.span),
            related=[tested(probe, operation), Related(lock.access.place, "locked only here")],
        )
