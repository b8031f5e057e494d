"""Synchronizing context manager created but not entered.

`main_process_first()`, `FileLock(path)`, and similar context managers take effect when a `with`
statement enters them. A call without `with` only creates an object that Python drops at once. No
process waits and nothing is locked, but the code after the call looks safe.

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

Not reported when:
* a `with` statement or an `ExitStack` enters the context manager;
* the context manager is assigned to a name, returned, or passed on;
* the call acquires a lock at once (`acquire()`), or runs the function that it receives;
* the context manager is defined in the project, and neither locks nor waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, callee_of
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
    """Find synchronizing context managers that are created and dropped."""
    for context in project.never_entered():
        yield RULE.finding(
            context,
            f"{callee_of(context)} has no effect unless it is used in a `with` statement",
            witness=Witness(
                (
                    WitnessStep(0, context.display, "context manager, not entered"),
                    WitnessStep(0, "runs the statements below"),
                    WitnessStep(1, context.display, "context manager, not entered"),
                    WitnessStep(1, "runs them at the same time"),
                ),
                "no process waits for another",
            ),
        )
