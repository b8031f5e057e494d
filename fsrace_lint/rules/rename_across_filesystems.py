"""Non-atomic move from a temporary directory to another filesystem.

A rename is atomic only within one filesystem. `/tmp`, `/dev/shm`, and the default directory of
`tempfile` are often on another filesystem than the target. From there, `os.rename()` and
`os.replace()` fail with `OSError: Invalid cross-device link`. `shutil.move()` copies the file
instead, so a concurrent reader, or the next run after a crash, sees a partial file.

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

On a test machine, the temporary directory and the target can be on one filesystem, so tests do not
show the error.

Not reported when:
* the temporary file is created in the directory of the target (`dir=`);
* the target is on a local disk too;
* nothing is known about the location of the target;
* the profile is the default one, because only `--profile strict` enables this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Promise, Rule, Witness, WitnessStep, code
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
    """Find moves from a local disk of the node to another filesystem."""
    for moved in project.accesses("rename"):
        target = project.made_by(moved)
        crosses = target is not None and not project.is_node_local(target)
        if crosses and project.is_node_local(moved.path):
            yield _finding(moved)


def _finding(moved: Access) -> Finding:
    copies = moved.operation.api == "shutil.move"
    what = "copied" if copies else "renamed"
    return RULE.finding(
        moved,
        f"{code(moved.path_source)} is {what} from a temporary directory to another filesystem",
        witness=Witness(
            (
                WitnessStep(
                    0,
                    moved.display,
                    "half copied" if copies else "OSError: Invalid cross-device link",
                ),
                WitnessStep(1, "reads the target", "a partial file" if copies else "FileNotFoundError"),
            ),
            "a concurrent reader sees a partial file"
            if copies
            else "the rename fails with `OSError: Invalid cross-device link`",
        ),
    )
