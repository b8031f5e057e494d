"""Several processes unpack an archive into one directory.

Each of them replaces the files that the others have unpacked and perhaps
already read. `tar` removes a file before it writes it, so that another `tar`
fails with "File exists"; `extractall` writes in place, so that a reader meets
files of length zero. A process that finds the directory there skips the
unpacking and starts on half a tree. And where each unpacks into a folder of its
own, `shutil.move` puts the tree of the second into that of the first.

Bad:
    import tarfile


    def fetch(archive: str, data: str) -> None:
        with tarfile.open(archive) as tar:
            tar.extractall(data)

Good:
    import os
    import tarfile

    from filelock import FileLock


    def fetch(archive: str, data: str) -> None:
        with FileLock(data + ".lock"):
            if not os.path.isdir(data):
                with tarfile.open(archive) as tar:
                    tar.extractall(data)

Silent when: one process of the job or of each node runs it, or runs it before
all others, which test whether it is there; a lock is held; the
destination belongs to one process, such as a temporary directory that is
renamed afterwards by `os.rename` or `os.replace`. In a script that one process runs, only the strict profile
reports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, Witness, WitnessStep, related
from fsrace_lint.rules.remedies import EXTRACT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR301",
    name="shared-extraction",
    remedies=(EXTRACT_ONCE,),
    promises=(
        Promise.TAR,
        Promise.RENAME,
    ),
    incidents=("Flyte",),
)


def check(project: Project) -> Iterator[Finding]:
    """Find archives that several processes unpack into one directory."""
    for extract in project.accesses("extract"):
        for move in project.moved_after(extract) if extract.is_private else ():
            if (
                move.operation.api == "shutil.move"
                and move.is_contended
                and not _is_seen_first(project, move)
            ):
                removal = project.file_deleted_for(move)
                yield _nested(move) if removal is None else _replaced(removal, move)
        if not extract.is_contended or _is_seen_first(project, extract):
            continue
        yield RULE.finding(
            extract,
            f"several processes can unpack into {extract.destination} at once",
            witness=Witness(
                (
                    WitnessStep(0, extract.display, "has unpacked half of it"),
                    WitnessStep(1, extract.display, "replaces the same files"),
                    WitnessStep(0, "reads a file of the tree", "finds it empty or missing"),
                ),
                "process 0 works on a tree that process 1 is rewriting",
            ),
            strict=extract.path is None,
        )


def _is_seen_first(project: Project, access: Access) -> bool:
    return access.is_serialized and project.cache_test_of(access) is not None


def _nested(move: Access) -> Finding:
    """Tell of a tree that is moved into the one that another process has put there."""
    steps = (
        WitnessStep(0, move.display, "the tree is there"),
        WitnessStep(1, move.display, "its tree is moved into that of process 0"),
        WitnessStep(1, "reads a file of the tree", "finds it one folder too deep"),
    )
    told = f"a process moves its tree into {move.destination}, where another has put one already"
    witness = Witness(steps, f"{move.destination} holds two trees, one in the other")
    return RULE.finding(move, told, witness=witness, strict=move.path is None)


def _replaced(removal: Access, move: Access) -> Finding:
    """Tell of a file that is deleted where another process has put its tree."""
    steps = (
        WitnessStep(0, move.display, "the tree is there"),
        WitnessStep(1, removal.display, "IsADirectoryError"),
    )
    told = f"a process deletes {removal.path_source}, where another has put its tree already"
    witness = Witness(steps, "process 1 dies with IsADirectoryError")
    return RULE.finding(removal, told, witness=witness, related=[related(move, "put there here")])
