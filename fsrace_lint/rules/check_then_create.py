"""A file or link is made only after a check that it is missing.

Two processes can both find it missing. Both then write it at the same time, and a third one, which comes a
moment later, finds it there and reads half of it. A link the slower process cannot make: it dies with
FileExistsError, even if it removes the old link first: both can do that before either links.

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

Silent when: it is written under another name and renamed; it is opened with `"x"`, or FileExistsError is
handled where a link is made; one process of the job or of each node runs it, or runs it before all others;
a lock is held, or made here (FSR501); the path belongs to one process. Only the strict profile reports it
in a script that one process runs, where it only appends, where the calls that are evidently made by several
let one go first, where a file that is there raises if nothing is evident or all meet in between, and, if
nothing is evident, where a link is removed and made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    Evidence,
    Promise,
    Rule,
    done_at,
    double_create_witness,
    double_replace_witness,
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
    remedies=CREATING,
    promises=(
        Promise.TRUNC,
        Promise.SYMLINK,
        Promise.EXCL,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find what two processes can both find missing and make, and links that both remove and make anew."""
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
                f"another process can make {link.path_source} after its removal on line {removal.span.line}",
                witness=double_replace_witness(removal, link),
                related=[related(removal, "removed here"), *done_at(link)],
                fix=PUBLISH_SYMLINK.at(link),
                strict=link.evidence is not Evidence.EVIDENT,
            )


def _is_strict(project: Project, probe: ExistenceCheck, access: Access) -> bool:
    unmet = access.evidence is Evidence.EVIDENT and not project.is_synchronized_between(probe, access)
    unsure = not unmet if probe.refuses else access.operation.appends
    return unsure or project.comes_in_order(access)


def _after_check(project: Project, group: list[tuple[ExistenceCheck, Access]]) -> Finding:
    probe, access = group[0]
    others = [*(other for _, other in group[1:]), *project.created_beside(probe, access)]
    return RULE.finding(
        access,
        f"another process can make {access.path_source} after the check on line {probe.span.line}",
        witness=double_create_witness(probe, access),
        related=[
            tested(probe, access),
            *done_at(access),
            *(related(other, "made after the same check") for other in others),
        ],
        fix=for_creation(probe, access),
        strict=_is_strict(project, probe, access),
    )
