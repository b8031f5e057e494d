"""What runs a function in one process is given its result.

`run_on_main(prepare())` calls `prepare` first, on every process, and hands over what
it returned: nothing. All processes have done the work, and the helper has nothing
left to run.

Bad:
    from speechbrain.utils.distributed import run_on_main


    def prepare(folder: str) -> None:
        print("preparing", folder)


    def main(folder: str) -> None:
        run_on_main(prepare(folder))

Good:
    from speechbrain.utils.distributed import run_on_main


    def prepare(folder: str) -> None:
        print("preparing", folder)


    def main(folder: str) -> None:
        run_on_main(prepare, args=[folder])

Silent when: what is called returns a function (`functools.partial`, a decorator, a
method that gives another), or it is not known what it returns; the result stands
where the helper takes an argument for the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep
from fsrace_lint.rules.remedies import PASS_THE_FUNCTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR409",
    name="run-once-called-eagerly",
    default_from=Evidence.NONE,
    remedies=(PASS_THE_FUNCTION,),
    promises=(Promise.CALL,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find results of calls where a function to be run once is expected."""
    for helper in project.eager():
        yield RULE.finding(
            helper,
            f"every process has run {helper.subject} before {helper.callee} is given its result",
            witness=Witness(
                (
                    WitnessStep(0, helper.argument, "is running"),
                    WitnessStep(1, helper.argument, "is running too"),
                    WitnessStep(0, f"{helper.callee}(...)", "is given a result, and no function"),
                ),
                f"{helper.subject} ran in every process at once",
            ),
        )
