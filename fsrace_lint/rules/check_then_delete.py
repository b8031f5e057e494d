"""A file or directory is deleted after a check, or a listing, that found it there.

Two processes can both find it there. One deletes it, and the slower one dies
with FileNotFoundError. Cleaning up old checkpoints on every rank is the usual
case.

Bad:
    import os


    def discard(path: str) -> None:
        if os.path.exists(path):
            os.remove(path)

Good:
    import os
    import contextlib


    def discard(path: str) -> None:
        if os.path.exists(path):
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)

Fix: `missing-ok` (safe after a check) makes the delete accept that the path is gone:
`unlink(missing_ok=True)`, or `contextlib.suppress(FileNotFoundError)` around
`os.remove`. The check stays, because without it more could be deleted than
before: `exists()` is False for a dangling link, `isfile()` for a directory.
For `shutil.rmtree` the fix is unsafe: `ignore_errors=True` hides other errors too.

Silent when: `missing_ok=True` or `ignore_errors=True`; FileNotFoundError,
OSError or Exception is handled or suppressed; one process of the job runs it; a
lock is held; the path belongs to one process; the branch for a missing path
raises. In a script that one process runs, only the strict profile reports it. What
is listed and then deleted on all ranks is told by FSR202.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.rules.base import Applicability, Promise, Related, Rule, check_then_act_witness, tested
from fsrace_lint.rules.remedies import MISSING_OK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(code="FSR103", name="check-then-delete", cwe=367, promises=(Promise.UNLINK,))


def check(project: Project) -> Iterator[Finding]:
    """Find deletes of a path that another process can delete first."""
    for probe, delete in project.probe_then("delete", absent=False):
        if _is_hazard(delete) and not probe.refuses:
            is_tree = delete.operation.api == "shutil.rmtree"
            told = delete.path is not None and probe.path.is_within(delete.path)
            exact = told and probe.is_implied and delete.is_surely_a_path and not is_tree
            yield RULE.finding(
                delete,
                f"another process can delete {delete.path_source} after the check on line {probe.span.line}",
                witness=check_then_act_witness(probe, delete, "FileNotFoundError"),
                related=[tested(probe, delete)],
                fix=msgspec.structs.replace(
                    MISSING_OK,
                    applicability=Applicability.SAFE if exact else Applicability.UNSAFE,
                    description=MISSING_OK.description + (" (ignore_errors=True)" if is_tree else ""),
                ).at(delete, probe.span if probe.is_whole_test else None),
            )
    for listing, delete in project.listed_then_deleted():
        if _is_hazard(delete):
            yield RULE.finding(
                delete,
                f"another process can delete {delete.path_source} after {listing.path_source} has found it",
                witness=check_then_act_witness(listing, delete, "FileNotFoundError"),
                related=[Related(listing.place, "found here")],
                fix=MISSING_OK.at(delete),
            )


def _is_hazard(delete: Access) -> bool:
    return delete.is_contended and not (delete.is_serialized or delete.tolerates("FileNotFoundError"))
