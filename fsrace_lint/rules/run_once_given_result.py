"""Run-once helper receives `f()` instead of `f`.

A run-once helper runs a function in only one process. `run_on_main(prepare())` first calls
`prepare()` on every process, and then passes the result to `run_on_main()`. Every process has done
the work, and the helper has nothing left to run. With one process, the outcome is the same, so
tests do not show it.

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

Not reported when:
* the call in the argument returns a function, such as `functools.partial()` or a decorator;
* it is not known what the call in the argument returns;
* the helper expects an argument of the function there, not the function itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import Evidence, Promise, Rule, Witness, WitnessStep, callee_of, code
from fsrace_lint.rules.remedies import PASS_THE_FUNCTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR409",
    name="run-once-given-result",
    default_from=Evidence.NONE,
    remedies=(PASS_THE_FUNCTION,),
    promises=(Promise.CALL,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find calls that pass a result to a run-once helper, which expects a function."""
    for helper in project.eager():
        yield RULE.finding(
            helper,
            f"{callee_of(helper)} is passed the result of {code(helper.subject)}, not the function",
            witness=Witness(
                (
                    WitnessStep(0, helper.argument, "running"),
                    WitnessStep(1, helper.argument, "running too"),
                    WitnessStep(0, f"{helper.callee}(...)", "gets a result, not a function"),
                ),
                f"{code(helper.subject)} runs in every process",
            ),
        )
