"""A file is handed over before all of its content is in it.

What a process writes to an open file waits in a buffer of its own until the
file is flushed or closed. Whoever opens the file by its final name before that, or
gets its lock, reads a file that is empty or cut off, or writes into the midst
of what is still to come. The same holds for a checkpoint that is saved in the background, and for
the file that names the latest one.

Bad:
    import json
    import os


    def store(path: str, table: dict) -> None:
        temporary = f"{path}.{os.getpid()}.tmp"
        with open(temporary, "w") as stream:
            json.dump(table, stream)
            os.replace(temporary, path)

Good:
    import json
    import os


    def store(path: str, table: dict) -> None:
        temporary = f"{path}.{os.getpid()}.tmp"
        with open(temporary, "w") as stream:
            json.dump(table, stream)
        os.replace(temporary, path)

Silent when: the file is closed or flushed first, the save waited for; it is not
buffered; what is renamed or unlocked is another file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Related, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import FLUSH_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR209",
    name="published-before-flushed",
    default_from=Evidence.NONE,
    remedies=(FLUSH_FIRST,),
    promises=(
        Promise.BUFFER,
        Promise.RENAME,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find open files that are renamed or unlocked while a part of them is in a buffer."""
    for written, handed_over in project.unflushed():
        does = "renames" if handed_over.op == "rename" else "unlocks"
        yield RULE.finding(
            handed_over,
            f"the process {does} {handed_over.path_source} while what it wrote is still in its buffer",
            witness=Witness(
                (
                    WitnessStep(0, f"{written.callee}(...)", "the content is in a buffer of process 0"),
                    WitnessStep(0, handed_over.source),
                    WitnessStep(1, "reads the file", "finds it empty or cut off"),
                    WitnessStep(0, "closes the file", "the content reaches it only now"),
                ),
                "process 1 works on half of a file",
            ),
            related=[Related(written.place, "written here, and not flushed")],
        )
    for save, pointer in project.unfinished():
        yield _pointing(save, pointer)


def _pointing(save: Access, pointer: Access) -> Finding:
    named = pointer.path_source
    return RULE.finding(
        pointer,
        f"the process writes {named} while the save that it names still goes on",
        witness=Witness(
            (
                WitnessStep(0, f"{save.callee}(...)", "returns, and goes on in the background"),
                WitnessStep(0, pointer.display, "says that it is there"),
                WitnessStep(1, f"reads {named}, and then the checkpoint", "finds half of it"),
            ),
            "process 1 loads a checkpoint that is not complete, as every process does after a crash",
        ),
        related=[Related(save.place, "started here, and not waited for")],
    )
