"""What a rule is, and the pieces that rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.analysis.accesses.model import Access
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.files.spans import Place
from fsrace_lint.findings.finding import Applicability, Finding, Fix, Related, Severity, Witness, WitnessStep
from fsrace_lint.rules.references import Promise
from fsrace_lint.rules.remedies import FixTemplate
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.accesses.model import AtCall, ExistenceCheck
    from fsrace_lint.analysis.accesses.vanishing_files import DirectoryListing
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.event_sequences import SequenceItem as Happening
    from fsrace_lint.analysis.synchronization.model import Misuse
    from fsrace_lint.analysis.synchronization.rank_divergence import Divergence

STORAGE: Final = ("filesystem", "shared-paths", "local-paths")
"""The settings that say on which storage paths lie."""
_SHOWN_CALLS: Final = 4

__all__ = [
    "STORAGE",
    "Applicability",
    "Evidence",
    "FixTemplate",
    "Place",
    "Promise",
    "Related",
    "Rule",
    "Severity",
    "Witness",
    "WitnessStep",
    "called",
    "check_then_act_witness",
    "done_at",
    "double_create_witness",
    "double_replace_witness",
    "missed_collective_finding",
    "related",
    "tested",
]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a rule.

    `name` is the name of the rule's file with dashes. `default_from` is the
    weakest evidence with which the default profile reports it; None leaves it to
    the strict profile. `remedies` are what can be done about its findings; the only
    one is offered with every finding that offers nothing of its own. `promises` are what
    it knows of systems and libraries, `incidents` sections of docs/incidents.md, and `settings` the
    keys that change what it reports or offers, besides those that select rules and files.
    """

    code: str
    name: str
    cwe: int = 362
    severity: Severity = Severity.ERROR
    default_from: Evidence | None = Evidence.PLAUSIBLE
    remedies: tuple[FixTemplate, ...] = ()
    promises: tuple[Promise, ...] = ()
    incidents: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def finding(
        self,
        access: Access | Happening | Misuse,
        message: str,
        *,
        witness: Witness,
        related: Iterable[Related] = (),
        fix: Fix | None = None,
        strict: bool = False,
    ) -> Finding:
        """Make a finding at a site.

        Args:
            access: The act that goes wrong.
            message: One sentence without a full stop.
            witness: The interleaving that goes wrong.
            related: The other places that belong to it.
            fix: What could be done about it, where the rule has more than one remedy.
            strict: Whether only the strict profile reports it, whatever the evidence.

        Returns:
            The finding.
        """
        if fix is None and len(self.remedies) == 1:
            fix = self.remedies[0].at(access)
        return Finding(
            code=self.code,
            name=self.name,
            message=message,
            place=Place(access.file, access.span),
            function=access.function,
            severity=self.severity,
            evidence=access.evidence.name.lower(),
            strict=strict or self.default_from is None or access.evidence < self.default_from,
            related=(*related, *_reached(access)),
            witness=witness,
            fix=fix if access.call_site.call.exact else None,
        )


def _reached(access: Access | Happening | Misuse) -> Iterable[Related]:
    """Point at the calls by which several processes come to a site, and at what shows that they do."""
    evident = access.evidence is Evidence.EVIDENT
    message = "several processes come here by this call" if evident else "reached by this call"
    for call_site in access.call_chain[:_SHOWN_CALLS]:
        yield called(call_site, message)
    callers = access.callers if isinstance(access, Access) else ()
    for call_site in [each for each in callers if each not in access.call_chain][:_SHOWN_CALLS]:
        yield called(call_site, "a part of its path is handed over here")
    if access.marker is not None:
        yield Related(access.marker.place, f"several processes run this: {access.marker.text}")


def called(call_site: CallSite, message: str) -> Related:
    """Point at a call."""
    return Related(Place(call_site.function.module.path, call_site.call.span), message)


def related(access: AtCall, message: str) -> Related:
    """Point at another site, or at a step."""
    return Related(Place(access.file, access.span), message)


def tested(probe: ExistenceCheck, access: Access) -> Related:
    """Point at the test that comes before a site."""
    answer = "missing" if probe.found_missing else "present"
    return Related(Place(access.file, probe.span), f"found {answer} here")


def done_at(access: Access) -> tuple[Related, ...]:
    """Point at the calls that lead to what does it, where a site is seen from another one."""
    between = (called(call_site, "which leads on by this call") for call_site in access.inlined_chain[1:-1])
    if access.call_site is access.leaf_call:
        return ()
    return (*between, called(access.leaf_call, f"{spell(access.leaf_call.call.function)} does it here"))


def check_then_act_witness(probe: ExistenceCheck | DirectoryListing, access: Access, error: str) -> Witness:
    """Tell how two processes get the same answer from a test, and the second fails in the act.

    Args:
        probe: The test, or the listing.
        access: The act.
        error: The exception that the second process dies with.

    Returns:
        The interleaving.
    """
    return Witness(
        (
            WitnessStep(0, probe.path_source, probe.answer),
            WitnessStep(1, probe.path_source, probe.answer),
            WitnessStep(0, access.display, "done"),
            WitnessStep(1, access.display, error),
        ),
        f"process 1 dies with {error}",
    )


def happens(step: Happening) -> Place:
    """Give the place of the call by which something happens."""
    return Place(step.file, step.span)


_MISSING: Final = {
    "branch": "takes the other way",
    "exit": "leaves before",
    "loop": "has another number of rounds",
    "first": "waits until process 0 has left the context",
    "function": "does not run this",
    "path": "has another path",
}


def missed_collective_finding(rule: Rule, divergence: Divergence) -> Finding:
    """Report a collective that some processes miss.

    Args:
        rule: The rule that reports it.
        divergence: What keeps them from it.

    Returns:
        The finding.
    """
    sync_point, how = divergence.sync_point, divergence.how
    called = spell(sync_point.call_site.call.function)
    leaf = spell(sync_point.leaf_call.call.function)
    via = "" if sync_point.call_site is sync_point.leaf_call else f", which calls {leaf},"
    if how == "path":
        message = f"all ranks meet in {called}, but each comes with a path of its own: {divergence.test}"
    elif how == "first":
        message = f"{called}{via} waits for all ranks inside {divergence.test}, at whose door they wait"
    elif how == "function":
        message = f"{called}{via} waits for all ranks, but some alone are let into {divergence.test}"
    elif how == "loop":
        message = f"ranks call {called}{via} as often as they find entries in {divergence.test}"
    else:
        message = f"ranks for which '{divergence.test}' comes out otherwise never reach {called}{via or ','}"
        message = f"{message} while the others wait there".replace(",, ", ", ")
    here, away = (0, 1) if sync_point.is_for_main else (1, 0)
    dies = "dies before" if divergence.raises else _MISSING[how]
    return rule.finding(
        sync_point,
        message,
        witness=Witness(
            (
                WitnessStep(here, sync_point.display, f"waits for process {away}"),
                WitnessStep(away, divergence.test, dies),
            ),
            f"process {here} waits until the process group times out",
        ),
        related=[
            Related(divergence.place, "this decides who comes"),
            *_waiting_at(sync_point),
            *(related(later, "nor do they reach this") for later in divergence.later),
        ],
        strict=not divergence.certain,
    )


def _waiting_at(sync_point: Happening) -> Iterable[Related]:
    """Point at the collective itself, where a call leads there."""
    if sync_point.leaf_call is not sync_point.call_site:
        yield called(sync_point.leaf_call, "here they wait")


def double_create_witness(probe: ExistenceCheck, access: Access) -> Witness:
    """Tell how two processes find something missing, and what comes of it when both make it.

    Args:
        probe: The test.
        access: The act.

    Returns:
        The interleaving: the second fails if it is a link, refuses what is there if that
        raises, and else spoils what the first has made.
    """
    if access.op == "link":
        return check_then_act_witness(probe, access, "FileExistsError")
    first = WitnessStep(0, probe.path_source, probe.answer)
    made = WitnessStep(0, access.display, "done")
    if probe.refuses:
        refused = WitnessStep(1, probe.path_source, str(probe.found_missing))
        return Witness(
            (first, made, refused), f"process 1 refuses {access.path_source}, which process 0 has made"
        )
    spoiled = (
        WitnessStep(1, access.display, "begins to write it again"),
        WitnessStep(0, f"reads {access.path_source}", "finds it empty or half written"),
    )
    return Witness(
        (first, WitnessStep(1, probe.path_source, probe.answer), made, *spoiled),
        f"process 0 goes on with half of {access.path_source}",
    )


def double_replace_witness(removal: Access, made: Access) -> Witness:
    """Tell how two processes remove a path before either makes it anew, which the second then cannot."""
    return Witness(
        (
            WitnessStep(0, removal.display, "done"),
            WitnessStep(1, removal.display, "nothing is left to remove"),
            WitnessStep(0, made.display, "done"),
            WitnessStep(1, made.display, "FileExistsError"),
        ),
        "process 1 dies with FileExistsError",
    )


def one_per_call(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Leave one finding at each call that leads to several: one of the default profile, if there is."""
    kept: dict[Place, Finding] = {}
    for finding in findings:
        known = kept.get(finding.place)
        if known is None or (known.strict and not finding.strict):
            kept[finding.place] = finding
    return kept.values()
