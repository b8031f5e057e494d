"""Path deleted after a separate existence check or listing.

Two processes can both find the path. One of them deletes it, and the slower one fails with
`FileNotFoundError`. A common case is a cleanup of old checkpoints that runs on every rank. Tests
with one process never fail, because nothing else deletes the path.

Bad:
    import os


    def discard(path: str) -> None:
        if os.path.exists(path):
            os.remove(path)

Good:
    import os
    import contextlib


    def discard(path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

Fix: `missing-ok` passes `missing_ok=True` to `Path.unlink()`, or wraps the call in
`contextlib.suppress(FileNotFoundError)`. It removes an `exists()` check if the `if` contains only
the call. That is safe if the function also writes or links a file there; a dangling link is then
deleted too. A check with `isfile()` stays if the function creates no file there, because it also
excludes other paths; otherwise, the fix is unsafe. After a listing, and for `shutil.rmtree()`, the
fix is unsafe. If the code reads the file before it deletes it, the fix is manual, because the
failure stops a second process that read it too; so it is if later code may refill a deleted tree.

Not reported when:
* the call passes `missing_ok=True` or `ignore_errors=True`;
* `FileNotFoundError`, `OSError`, or `Exception` is caught or suppressed;
* only one process runs the call, or one process runs it before all others (`main_process_first()`);
* a lock is held;
* the path is private to the process;
* the code raises on purpose if the path is missing;
* all ranks clearly delete the paths that they listed (FSR202 reports that);
* the script runs in a single process, unless you pass `--profile strict`;
* no code shows that multiple processes run it, and no name suggests a cache, a download, or data,
  unless you pass `--min-severity note`;
* the call is in `__del__()`, or in an exception handler that raises, unless you pass
  `--min-severity note`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fsrace_lint.rules.base import (
    Applicability,
    Confidence,
    Promise,
    Related,
    Rule,
    check_then_act_witness,
    code,
    many,
    tested,
)
from fsrace_lint.rules.remedies import MISSING_OK_UNCHECKED, RESET_ON_FIRST, for_late_delete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding, Fix

RULE = Rule(
    code="FSR103",
    name="check-then-delete",
    cwe=367,
    is_tentative=True,
    promises=(Promise.UNLINK,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find deletions, after a check or a listing, of paths that another process can delete first."""
    for probe, delete in project.probe_then("delete", absent=False):
        if _is_hazard(delete) and not probe.refuses:
            yield RULE.finding(
                delete,
                f"{code(delete.path_source)} is deleted by {many(delete)} after a separate existence check",
                witness=check_then_act_witness(probe, delete, "FileNotFoundError"),
                related=[tested(probe, delete)],
                fix=_fix(project, probe, delete),
                at_most=_at_most(project, delete),
            )
    for listing, delete in project.listed_then_deleted():
        if _is_hazard(delete):
            listed = code(listing.path_source)
            yield RULE.finding(
                delete,
                f"{code(delete.path_source)} is deleted by {many(delete)} after {listed} listed it",
                witness=check_then_act_witness(listing, delete, "FileNotFoundError"),
                related=[Related(listing.place, "multiple processes can list it")],
                fix=for_late_delete(project, delete),
                at_most=_at_most(project, delete),
            )


def _fix(project: Project, probe: ExistenceCheck, delete: Access) -> Fix:
    """Remove a check that excludes only a missing path, as far as the function shows.

    A check of the kind of the path stays, unless the function creates a file or a directory there. A tree
    that is recreated is reported by FSR203 too, whose fix moves the call.
    """
    if project.is_reset(delete):
        return RESET_ON_FIRST.at(delete)
    is_tree = delete.operation.api == "shutil.rmtree"
    of_directory = is_tree or delete.operation.api.endswith(".rmdir")
    told = delete.path is not None and probe.path.is_within(delete.path)
    exact = told and probe.is_implied and delete.is_surely_a_path and not is_tree
    is_redundant = probe.guards_only_the_site and probe.is_implied and probe.path == delete.path
    is_redundant = is_redundant and not (is_tree and project.may_be_filled_after(delete))
    if is_redundant and (probe.asks_existence or (probe.asks_directory if of_directory else probe.asks_file)):
        is_shown = (project.is_used_as_directory if of_directory else project.is_used_as_file)(delete)
        if is_shown or probe.asks_existence:
            alike = exact and is_shown
            alike = alike and project.excludes_only_missing(probe, delete, of_directory=of_directory)
            safe = Applicability.SAFE if alike else Applicability.UNSAFE
            return msgspec.structs.replace(MISSING_OK_UNCHECKED.at(delete, probe.span), applicability=safe)
    safe = Applicability.SAFE if exact else Applicability.UNSAFE
    return for_late_delete(project, delete, safe)


def _is_hazard(delete: Access) -> bool:
    return delete.is_contended and not (delete.is_serialized or delete.tolerates("FileNotFoundError"))


def _at_most(project: Project, delete: Access) -> Confidence:
    return Confidence.LOW if project.fails_unnoticed(delete) else Confidence.HIGH
