"""What a rule is, and the pieces that rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.facts.spell import spell
from fsrace_lint.findings import Applicability, Finding, Fix, Related, Severity, Step, Witness
from fsrace_lint.project.model import Evidence
from fsrace_lint.spans import Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.project.model import Misuse, Probe, Site

_SHOWN_CALLS: Final = 4

__all__ = [
    "Applicability",
    "Evidence",
    "Fix",
    "Related",
    "Rule",
    "Severity",
    "Step",
    "Witness",
    "both_pass",
    "tested",
]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a rule.

    `name` is the name of the rule's file with dashes. `default_from` is the
    weakest evidence with which the default profile reports it; None leaves it to
    the strict profile.
    """

    code: str
    name: str
    cwe: int = 362
    severity: Severity = Severity.ERROR
    default_from: Evidence | None = Evidence.PLAUSIBLE

    def finding(
        self,
        site: Site,
        message: str,
        *,
        witness: Witness,
        related: Iterable[Related] = (),
        fix: Fix | None = None,
        strict: bool = False,
    ) -> Finding:
        """Make a finding at a site.

        Args:
            site: The act that goes wrong.
            message: One sentence without a full stop.
            witness: The interleaving that goes wrong.
            related: The other places that belong to it.
            fix: What could be done about it.
            strict: Whether only the strict profile reports it, whatever the evidence.

        Returns:
            The finding.
        """
        return Finding(
            code=self.code,
            name=self.name,
            message=message,
            place=Place(site.file, site.span),
            function=site.function,
            severity=self.severity,
            evidence=site.evidence.name.lower(),
            strict=strict or self.default_from is None or site.evidence < self.default_from,
            related=(*related, *_reached(site)),
            witness=witness,
            fix=fix if site.event.call.exact else None,
        )

    def misused(self, call: Misuse, message: str, *, witness: Witness) -> Finding:
        """Make a finding at a call that does not do what it is there for.

        Args:
            call: The call.
            message: One sentence without a full stop.
            witness: The interleaving that goes wrong.

        Returns:
            The finding.
        """
        return Finding(
            code=self.code,
            name=self.name,
            message=message,
            place=Place(call.file, call.span),
            function=call.function,
            severity=self.severity,
            evidence=call.evidence.name.lower(),
            strict=self.default_from is None or call.evidence < self.default_from,
            witness=witness,
        )


def _reached(site: Site) -> Iterable[Related]:
    """Point at the calls by which several processes come to a site, and at what shows that they do."""
    evident = site.evidence is Evidence.EVIDENT
    message = "several processes come here by this call" if evident else "reached by this call"
    for event in site.way[:_SHOWN_CALLS]:
        yield Related(Place(event.function.module.path, event.call.span), message)
    if site.sign is not None:
        yield Related(site.sign.place, f"several processes run this: {site.sign.text}")


def tested(probe: Probe, site: Site) -> Related:
    """Point at the test that comes before a site."""
    answer = "missing" if probe.absent else "present"
    return Related(Place(site.file, probe.span), f"found {answer} here")


def done_at(site: Site) -> tuple[Related, ...]:
    """Point at the call that does it, where a site is seen from a call that leads there."""
    if site.event is site.origin:
        return ()
    origin = site.origin
    return (
        Related(
            Place(origin.function.module.path, origin.call.span),
            f"{spell(origin.call.function)} does it here",
        ),
    )


def both_pass(probe: Probe, site: Site, error: str) -> Witness:
    """Tell how two processes get the same answer from a test, and the second fails in the act.

    Args:
        probe: The test.
        site: The act.
        error: The exception that the second process dies with.

    Returns:
        The interleaving.
    """
    return Witness(
        (
            Step(0, probe.spelled, probe.answer),
            Step(1, probe.spelled, probe.answer),
            Step(0, site.told, "done"),
            Step(1, site.told, error),
        ),
        f"process 1 dies with {error}",
    )


def one_per_call(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Leave one finding at each call that leads to several: one of the default profile, if there is."""
    kept: dict[Place, Finding] = {}
    for finding in findings:
        known = kept.get(finding.place)
        if known is None or (known.strict and not finding.strict):
            kept[finding.place] = finding
    return kept.values()
