"""File or symlink created after a separate existence check.

Two processes can both find the file missing, and then both write it. Meanwhile, a third process finds the
file and reads partial content. With a link, the slower process fails with `FileExistsError`. Deleting the
old link first does not help: both processes can delete it before either one creates the new link. Later
runs find the file, so tests rarely show the race.

Bad:
    import os

    import numpy as np


    def load_index(lengths: list[int], folder: str) -> np.ndarray:
        cache = os.path.join(folder, "index.npy")
        if not os.path.exists(cache):
            np.save(cache, np.cumsum(lengths))
        return np.load(cache)

Good:
    import os

    import numpy as np
    from filelock import FileLock

    def load_index(lengths: list[int], folder: str) -> np.ndarray:
        cache = os.path.join(folder, "index.npy")
        with FileLock(cache + ".lock"):
            if not os.path.exists(cache):
                np.save(cache, np.cumsum(lengths))
        return np.load(cache)

Not reported when:
* the file is written under a temporary name and then renamed, or the call is atomic;
* the file is opened with mode `"x"`, or `FileExistsError` is handled where a link is created;
* only one process per job, or one per node, runs the call, or one process runs it before all others;
* a lock is held, or the file is a lock file (FSR501 reports that);
* the path is private to the process;
* with the default profile: only one process runs the script, or the call only appends or writes nothing;
* with the default profile: one of multiple callers lets one process go first (`main_process_first()`);
* with the default profile: the code raises on purpose if the path exists. This is still reported if every
  process of a job clearly runs the code with no barrier before the call: the fastest process creates the
  file, and the others raise;
* with the default profile: a link is recreated without a check, perhaps by only one process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.rules.base import (
    Evidence,
    Promise,
    Rule,
    code,
    created_after_check,
    done_at,
    double_create_witness,
    double_replace_witness,
    many,
    related,
    tested,
)
from fsrace_lint.rules.remedies import CREATING, PUBLISH_SYMLINK, for_creation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.files.spans import Span
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR102",
    name="check-then-create",
    cwe=367,
    is_tentative=True,
    remedies=CREATING,
    promises=(Promise.TRUNC, Promise.SYMLINK, Promise.EXCL),
)
_BESIDE: Final = "created after the same check"
_KINDS: Final = {"link": "link", "mkdir": "directory"}


def check(project: Project) -> Iterator[Finding]:
    """Find files and links that two processes can both create after a check, or both recreate."""
    groups: dict[tuple[str, Span], list[tuple[ExistenceCheck, Access]]] = {}
    for probe, access in project.created_after_check("write", "copy", "link", "mkdir"):
        if access.can_be_made_twice and not project.is_lock_file(access):
            groups.setdefault((access.file, probe.span), []).append((probe, access))
    for group in groups.values():
        plain = [(probe, access) for probe, access in group if not _is_strict(project, probe, access)]
        yield _after_check(project, plain or group)
    checked = {access.call_site for group in groups.values() for _, access in group}
    for removal, link in project.pairs({"delete"}, {"link"}):
        if link.path == removal.path and link.can_be_made_twice and link.call_site not in checked:
            yield RULE.finding(
                link,
                f"link {code(link.path_source)} is removed and recreated by {many(link)}",
                witness=double_replace_witness(removal, link),
                related=[related(removal, "removed here"), *done_at(link)],
                fix=PUBLISH_SYMLINK.at(link),
                strict=link.evidence < Evidence.LIKELY,
            )


def _is_strict(project: Project, probe: ExistenceCheck, access: Access) -> bool:
    unmet = access.evidence >= Evidence.LIKELY and not project.is_synchronized_between(probe, access)
    unsure = not unmet if probe.refuses else access.operation.appends or project.is_marker(access)
    return unsure or project.comes_in_order(access)


def _after_check(project: Project, group: list[tuple[ExistenceCheck, Access]]) -> Finding:
    probe, access = group[0]
    others = (*(other for _, other in group[1:]), *project.created_beside(probe, access))
    return RULE.finding(
        access,
        created_after_check("directory" if access.operation.tree else _KINDS.get(access.op, "file"), access),
        witness=double_create_witness(probe, access),
        related=[tested(probe, access), *done_at(access), *(related(each, _BESIDE) for each in others)],
        fix=for_creation(probe, access),
        strict=_is_strict(project, probe, access),
        at_most=project.highest_confidence(access),
    )
