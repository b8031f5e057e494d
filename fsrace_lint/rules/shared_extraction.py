"""Archive extracted into a shared directory by multiple processes.

Each process overwrites files that other processes have extracted and may already read.
`extractall()` truncates a file before it writes it, so a reader can find it empty. `tar` deletes a
file before it writes it, so a second `tar` fails with "File exists". A process that finds the
directory skips the extraction and starts with half of the files.

Bad:
    import os
    import tarfile


    def fetch(archive: str, data: str) -> None:
        if not os.path.isdir(data):
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

The rule also reports a `shutil.move()` after the extraction, even if each process extracts into a
directory of its own. If the target exists, `shutil.move()` puts the second tree inside the first.

Not reported when:
* only one process per job, or one per node, runs the call;
* one process runs the call before all others, and the other processes check for the extracted
  files;
* a lock is held;
* the target directory is private to the process, such as a temporary directory that `os.rename()`
  or `os.replace()` moves into place afterwards;
* the script runs in a single process, unless you pass `--profile strict`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, Witness, WitnessStep, code, destination, many, one, related
from fsrace_lint.rules.remedies import EXTRACT_ASIDE, EXTRACTING, for_extraction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR301",
    name="shared-extraction",
    remedies=EXTRACTING,
    promises=(
        Promise.TAR,
        Promise.RENAME,
    ),
    incidents=("Flyte",),
)


def check(project: Project) -> Iterator[Finding]:
    """Find archives that multiple processes extract into one directory."""
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
            f"{many(extract)} extract an archive into {destination(extract)} at the same time",
            witness=Witness(
                (
                    WitnessStep(0, extract.display, "half extracted"),
                    WitnessStep(1, extract.display, "rewrites the same files"),
                    WitnessStep(0, "reads a file of the tree", "empty or missing"),
                ),
                "a process can read files that another one is rewriting",
            ),
            fix=for_extraction(project, extract),
            strict=extract.path is None,
            at_most=project.highest_confidence(extract),
        )


def _is_seen_first(project: Project, access: Access) -> bool:
    return access.is_serialized and project.cache_test_of(access) is not None


def _nested(move: Access) -> Finding:
    """Report a tree that is moved into the tree of another process."""
    steps = (
        WitnessStep(0, move.display, "done"),
        WitnessStep(1, move.display, "moved inside the tree of process 0"),
        WitnessStep(1, "reads a file of the tree", "one directory too deep"),
    )
    told = f"a directory is moved to {destination(move)}, which another {one(move)} may have created already"
    witness = Witness(steps, f"{destination(move)} contains one copy of the tree inside the other")
    fix = EXTRACT_ASIDE.at(move)
    return RULE.finding(move, told, witness=witness, fix=fix, strict=move.path is None)


def _replaced(removal: Access, move: Access) -> Finding:
    """Report the deletion of a file where another process may have moved its tree."""
    steps = (
        WitnessStep(0, move.display, "done"),
        WitnessStep(1, removal.display, "IsADirectoryError"),
    )
    told = f"{code(removal.path_source)} is deleted, but another {one(removal)} may have moved its tree there"
    witness = Witness(steps, "the slower process fails with `IsADirectoryError`")
    fix, more = EXTRACT_ASIDE.at(removal), [related(move, "moved here")]
    return RULE.finding(removal, told, witness=witness, related=more, fix=fix)
