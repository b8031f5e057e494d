"""A file is moved from the temporary folder to another filesystem.

A rename is atomic only within one filesystem. From `/tmp`, from `/dev/shm` or from
where `tempfile` puts things by itself, `os.rename` and `os.replace` to a disk that
the nodes share fail with "Invalid cross-device link", and `shutil.move` copies: a
reader meets half a file, and after a crash half a file stays.

Bad:
    import os
    import shutil
    import tempfile


    def publish(data: bytes, target: str) -> None:
        folder = tempfile.mkdtemp()
        beside = os.path.join(folder, "data.bin")
        with open(beside, "wb") as stream:
            stream.write(data)
        shutil.move(beside, target)

Good:
    import os
    import tempfile


    def publish(data: bytes, target: str) -> None:
        folder = tempfile.mkdtemp(dir=os.path.dirname(target))
        beside = os.path.join(folder, "data.bin")
        with open(beside, "wb") as stream:
            stream.write(data)
        os.replace(beside, target)

Silent when: the temporary file is made beside its target (`dir=`); the target is on
the node's own disk too; where the target lies is not known at all. Only the strict
profile reports it: on one machine all of it can be one filesystem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import STAGE_BESIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR208",
    name="rename-across-filesystems",
    default_from=None,
    remedies=(STAGE_BESIDE,),
    promises=(
        Promise.EXDEV,
        Promise.RENAME,
        Promise.TMP,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find renames from the node's own disk to elsewhere."""
    for moved in project.accesses("rename"):
        target = project.made_by(moved)
        crosses = target is not None and not project.is_node_local(target)
        if crosses and project.is_node_local(moved.path):
            yield _finding(moved)


def _finding(moved: Access) -> Finding:
    copies = moved.operation.api == "shutil.move"
    what = "is copied, not renamed" if copies else "cannot be renamed, if that is another filesystem"
    return RULE.finding(
        moved,
        f"{moved.path_source} lies in the node's temporary folder and {what}",
        witness=Witness(
            (
                WitnessStep(
                    0,
                    moved.display,
                    "has copied half of it" if copies else "OSError: Invalid cross-device link",
                ),
                WitnessStep(1, "reads the target", "half of it" if copies else "FileNotFoundError"),
            ),
            "process 1 works on half a file" if copies else "process 0 dies, and nobody gets the file",
        ),
    )
