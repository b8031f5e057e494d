"""File renamed or unlocked before it is flushed.

Written data stays in a buffer of the process until the file is flushed or closed. If the process
renames or unlocks the file before that, a reader finds it empty or truncated. The next process that
acquires the lock can write first, so the two contents are mixed. A reader also sees an incomplete
checkpoint if a background save is still running when a pointer file already names the checkpoint.

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

Not reported when:
* the file is flushed or closed before it is renamed or unlocked;
* the code waits for the background save to complete;
* the file is not buffered (`buffering=0`, or `os.open()`);
* the renamed or unlocked file is not the file that is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Related, Rule, Witness, WitnessStep, code
from fsrace_lint.rules.remedies import FLUSH_FIRST, WAIT_FOR_SAVE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR209",
    name="published-before-flushed",
    default_from=Evidence.NONE,
    remedies=(FLUSH_FIRST, WAIT_FOR_SAVE),
    promises=(
        Promise.BUFFER,
        Promise.RENAME,
    ),
)


def check(project: Project) -> Iterator[Finding]:
    """Find files that are published or unlocked before their content, or their checkpoint, is complete."""
    for written, handed_over in project.unflushed():
        done = "renamed" if handed_over.op == "rename" else "unlocked"
        yield RULE.finding(
            handed_over,
            f"{code(handed_over.path_source)} is {done} before its buffered content is flushed",
            witness=Witness(
                (
                    WitnessStep(0, f"{written.callee}(...)", "the content is still in a buffer"),
                    WitnessStep(0, handed_over.source),
                    WitnessStep(1, "reads the file", "empty or truncated"),
                    WitnessStep(0, "closes the file", "the content is written only now"),
                ),
                "a reader can find the file empty or truncated",
            ),
            related=[Related(written.place, "written here, and not flushed")],
            fix=FLUSH_FIRST.at(handed_over),
        )
    for save, pointer in project.unfinished():
        yield _pointing(save, pointer)


def _pointing(save: Access, pointer: Access) -> Finding:
    named = pointer.path_source
    return RULE.finding(
        pointer,
        f"{code(named)} is written before the save that it points to has finished",
        witness=Witness(
            (
                WitnessStep(0, f"{save.callee}(...)", "returns; the save continues in the background"),
                WitnessStep(0, pointer.display, "points to the checkpoint"),
                WitnessStep(1, f"reads {code(named)}, then the checkpoint", "incomplete"),
            ),
            "a reader, or a restart after a crash, loads an incomplete checkpoint",
        ),
        related=[Related(save.place, "the save starts here, and nothing waits for it")],
        fix=WAIT_FOR_SAVE.at(pointer),
    )
