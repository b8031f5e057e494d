"""Barrier or other collective called by only some ranks (deadlock).

A collective is a call that every rank must make, such as a barrier, a broadcast, or a save in which
all ranks take part. It returns only after every rank has called it. If a rank check, an early
return, or an exception keeps one rank away, the other ranks hang. The job fails when the *process
group*, which connects the ranks, times out, often half an hour later and far from the cause.

Bad:
    import torch
    import torch.distributed as dist


    def finish(model: torch.nn.Module, path: str) -> None:
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), path)
            dist.barrier()

Good:
    import torch
    import torch.distributed as dist


    def finish(model: torch.nn.Module, path: str) -> None:
        if dist.get_rank() == 0:
            torch.save(model.state_dict(), path)
        dist.barrier()

The rule looks in branches, in exception handlers, and after code where some ranks `return` or
`raise`. It looks in loops that some ranks leave by `break` or by a flag that only they set. It also
looks in `with` blocks such as `with main_process_first():`, and in functions that a decorator or a
helper such as `run_on_main()` runs on one rank. A call to one of your own functions counts as a
collective if that function calls a collective, directly or indirectly. If a branch or a loop has
multiple collectives, the rule reports the first one and lists the rest.

All ranks usually get the same exception. So the confidence is at most medium if an exception decides,
unless the failing call can lose a race with another rank. It is low if a module is missing.

Not reported when:
* the condition has the same value on all ranks, because it depends on a setting, the world size,
  `is_initialized()`, or a value that an earlier call broadcast or gathered;
* the other ranks call the same collective, in the other branch or under a later, opposite check
  (`if rank != 0: barrier()`, then `if rank == 0: barrier()`), so all ranks meet;
* the call is for a group of ranks that it names (`group=`), not for all ranks;
* with the default profile: the branch calls a function that calls the collective only under another
  condition, such as a setting, or that keeps its results (`functools.cache`);
* with the default profile: ranks that leave a loop can meet the others at another call of the same
  collective;
* with the default profile: the branch is an endless loop in which the other ranks wait for requests of
  the main process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.rules.base import (
    Place,
    Promise,
    Related,
    Rule,
    Witness,
    WitnessStep,
    code,
    missed_collective_finding,
)
from fsrace_lint.rules.remedies import ALL_CALL_IT
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.analysis.synchronization.agreed_attributes import OneSidedAttribute
    from fsrace_lint.findings.finding import Finding

RULE = Rule(
    code="FSR402",
    name="divergent-collective",
    cwe=833,
    remedies=(ALL_CALL_IT,),
    promises=(Promise.COLLECTIVE,),
)


def check(project: Project) -> Iterator[Finding]:
    """Find collectives that some ranks miss because of a rank check or an exception."""
    for divergence in project.divergent():
        if not divergence.is_by_files:
            yield missed_collective_finding(RULE, divergence, ALL_CALL_IT)
    for attribute in project.one_sided_attributes():
        yield _attribute_finding(attribute)


def _attribute_finding(found: OneSidedAttribute) -> Finding:
    """Return the finding for an attribute that only some ranks read or set."""
    name, test = found.callee, spell(found.branch.test)
    here, away = (0, 1) if found.event.is_for_main else (1, 0)
    if found.is_set:
        message = f"only some ranks set {code(name)}, which every rank must set alike"
        steps = (WitnessStep(here, f"sets {name}", "leaves the loop"), WitnessStep(away, name, "goes on"))
        outcome = "the ranks that go on hang in their next collective"
    else:
        message = f"only some ranks read {code(name)}, which can wait for all ranks"
        waits = f"waits for process {away}"
        steps = (WitnessStep(here, name, waits), WitnessStep(away, test, "skips this branch"))
        outcome = "the ranks that read it hang until a timeout"
    return RULE.finding(
        found.event,
        f"{message}, depending on {code(test)}",
        witness=Witness(steps, outcome),
        related=(Related(Place(found.file, found.branch.span), "this condition can differ between ranks"),),
        strict=True,
    )
