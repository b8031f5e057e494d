"""A context that orders processes is made and never entered.

`main_process_first()`, `FileLock(path)` and the like do their work when a `with`
enters them. Called as a statement of their own they only make an object, which is
dropped at once: nobody waits, nothing is locked, and the code below looks as if it
were safe.

Bad:
    from accelerate import Accelerator


    def train(accelerator: Accelerator) -> None:
        accelerator.main_process_first()
        prepare()


    def prepare() -> None:
        print("preparing")

Good:
    from accelerate import Accelerator


    def train(accelerator: Accelerator) -> None:
        with accelerator.main_process_first():
            prepare()


    def prepare() -> None:
        print("preparing")

Silent when: the context is entered by `with` or by an `ExitStack`, kept under a
name, returned or passed on; the call takes a lock at once (`acquire`), or runs the
function that it is given; a context of the project neither locks nor waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import ENTER_THE_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR410",
    name="context-never-entered",
    default_from=Evidence.NONE,
    remedies=(ENTER_THE_CONTEXT,),
    promises=(Promise.WITH,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find contexts for several processes that are made and dropped."""
    for context in project.never_entered():
        yield RULE.finding(
            context,
            f"{context.callee} {context.subject} only where it is entered, and no process enters it here",
            witness=Witness(
                (
                    WitnessStep(0, context.display, "a context, which is dropped"),
                    WitnessStep(0, "is in the middle of what stands below"),
                    WitnessStep(1, context.display, "a context, which is dropped"),
                    WitnessStep(1, "runs what stands below at the same time"),
                ),
                "process 1 did not wait for process 0",
            ),
        )
