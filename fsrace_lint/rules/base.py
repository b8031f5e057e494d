"""The `Rule` class, and helpers that multiple rules use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from fsrace_lint.analysis.accesses.confidence import Confidence, confidence
from fsrace_lint.analysis.accesses.model import Access
from fsrace_lint.analysis.callgraph.concurrency import Entry, Evidence
from fsrace_lint.files.spans import Place
from fsrace_lint.findings.finding import (
    Applicability,
    Finding,
    Fix,
    Related,
    Role,
    Severity,
    Witness,
    WitnessStep,
)
from fsrace_lint.rules.references import Promise
from fsrace_lint.rules.remedies import FixTemplate
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.analysis.accesses.model import AtCall, ExistenceCheck
    from fsrace_lint.analysis.accesses.vanishing_files import DirectoryListing
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.event_sequences import SequenceItem as Happening
    from fsrace_lint.analysis.synchronization.model import Divergence, Misuse
    from fsrace_lint.syntax import model as m

STORAGE: Final = ("filesystem", "shared-paths", "local-paths")
"""The settings that describe the storage of paths."""
_ROLES: Final = {"rank": "ranks of one job", "worker": "worker processes"}
_ONE: Final = {
    "ranks": "rank",
    "workers": "worker",
    "imports": "process",
    "calls": "caller",
    "commands": "run",
    "": "process",
}
"""The noun for one of the processes that run the code, by scenario."""
_ENTRIES: Final = {
    Entry.CALL: "calls",
    Entry.NEVER: "calls",
    Entry.COMMAND: "commands",
    Entry.SCRIPT: "commands",
    Entry.IMPORT: "imports",
}
_VERBS: Final = {
    "mkdir": "created",
    "create": "created",
    "write": "written",
    "copy": "written",
    "delete": "deleted",
    "rename": "moved",
    "link": "linked",
    "extract": "extracted",
    "download": "downloaded",
}

__all__ = [
    "STORAGE",
    "Applicability",
    "Confidence",
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
    "called_name",
    "callee_of",
    "check_then_act_witness",
    "code",
    "created_after_check",
    "destination",
    "done_at",
    "double_create_witness",
    "double_replace_witness",
    "locked_here",
    "many",
    "missed_collective_finding",
    "one",
    "related",
    "tested",
]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a rule.

    Attributes:
        code: The code, such as `FSR101`.
        name: The name of the rule's file, with dashes.
        cwe: The number of the CWE entry.
        severity: The severity of the consequence.
        is_tentative: Whether its findings have at most medium confidence, because most of those in code that
            the project never saw were not real.
        is_crash: Whether the failure is that of one process that is killed in between, which is rare.
        default_from: The weakest evidence that the default profile reports. If None, only the strict
            profile reports the rule.
        remedies: The fixes that the rule can offer. If there is only one, every finding without a fix
            of its own offers it.
        promises: The guarantees of systems and libraries that the rule relies on.
        incidents: Sections of docs/incidents.md.
        settings: The settings that change what the rule reports or offers, except those that select
            rules and files.
    """

    code: str
    name: str
    cwe: int = 362
    severity: Severity = Severity.ERROR
    is_tentative: bool = False
    is_crash: bool = False
    default_from: Evidence | None = Evidence.PLAUSIBLE
    remedies: tuple[FixTemplate, ...] = ()
    promises: tuple[Promise, ...] = ()
    incidents: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def highest_severity(self) -> Severity:
        """The severity of its findings with the highest confidence."""
        return Severity.WARNING if self.is_tentative or self.is_crash else self.severity

    def finding(
        self,
        access: Access | Happening | Misuse,
        message: str,
        *,
        witness: Witness,
        related: Iterable[Related] = (),
        fix: Fix | None = None,
        strict: bool = False,
        at_most: Confidence = Confidence.HIGH,
    ) -> Finding:
        """Create a finding at an operation.

        Args:
            access: The operation to report.
            message: One sentence without a period.
            witness: The failing interleaving.
            related: Other places that explain the finding.
            fix: The fix. If None, the only remedy of the rule.
            strict: Whether only the strict profile reports it, regardless of the evidence.
            at_most: The highest confidence that the cause allows.
        """
        if fix is None and len(self.remedies) == 1:
            fix = self.remedies[0].at(access)
        certainty = min(confidence(access), at_most, Confidence.MEDIUM if self.is_tentative else at_most)
        if self.default_from is Evidence.NONE:  # one process is enough
            certainty = max(certainty, Confidence.MEDIUM)
        return Finding(
            code=self.code,
            name=self.name,
            message=message,
            place=Place(access.file, access.span),
            function=access.function,
            severity=_severity(self.highest_severity, certainty),
            evidence=access.evidence.name.lower(),
            strict=strict or self.default_from is None or access.evidence < self.default_from,
            related=(*related, *_unprotected(access), *_reached(access)),
            witness=witness,
            fix=fix if access.call_site.call.exact else None,
            confidence=certainty.name.lower(),
            scenario="crash" if self.is_crash else _scenario(access),
        )


def _severity(consequence: Severity, certainty: Confidence) -> Severity:
    """Return the severity of a finding.

    Args:
        consequence: The severity of the consequence.
        certainty: How certain it is that the race can occur in ordinary use.
    """
    if certainty is Confidence.LOW:
        return Severity.NOTE
    return consequence if certainty is Confidence.HIGH else Severity.WARNING


def one(found: Access) -> str:
    """Return the noun for one of the processes that run an operation: "rank", "worker", or the like."""
    return _ONE[_scenario(found)]


def many(found: Access) -> str:
    """Return "multiple" and the noun for the processes that run an operation, such as "multiple ranks"."""
    noun = one(found)
    return f"multiple {noun}es" if noun.endswith("s") else f"multiple {noun}s"


def _scenario(found: Access | Happening | Misuse) -> str:
    """Return which processes run what a rule found at the same time: a value of `Finding.scenario`."""
    if found.marker is not None:
        return f"{found.marker.role}s"
    if found.evidence is Evidence.PLAUSIBLE:
        return _ENTRIES[found.trace.entry] if isinstance(found, Access) else "calls"
    return "ranks" if found.evidence >= Evidence.LIKELY else ""


def _unprotected(found: Access | Happening | Misuse) -> Iterable[Related]:
    """Yield what breaks the locks that are held at an operation."""
    for access in dict.fromkeys(found.broken_locks if isinstance(found, Access) else ()):
        why = "its file is deleted here" if access.op == "delete" else "its name differs between processes"
        if access.span != found.span:
            yield related(access, f"the lock around this does not work: {why}")


def _reached(access: Access | Happening | Misuse) -> Iterable[Related]:
    """Yield the call chain to an operation, and the evidence that multiple processes run it."""
    for call_site in access.call_chain:
        caller = call_site.function.facts
        where = "the module" if call_site.function.index == 0 else code(f"{caller.name}()")
        yield called(call_site, f"called from {where}", Role.CALL)
    callers = access.callers if isinstance(access, Access) else ()
    for call_site in (each for each in callers if each not in access.call_chain):
        yield called(call_site, "passes part of the path", Role.CALL)
    marker = access.marker
    if marker is not None:
        probably = "" if marker.evidence is Evidence.EVIDENT else "probably "
        yield Related(marker.place, f"{_ROLES[marker.role]} {probably}run this: {marker.text}", Role.REASON)


def called(call_site: CallSite, message: str, role: Role = Role.PLACE) -> Related:
    """Return a related place: a call."""
    return Related(Place(call_site.function.module.path, call_site.call.span), message, role)


def related(access: AtCall, message: str) -> Related:
    """Return a related place: another operation."""
    return Related(Place(access.file, access.span), message)


def code(text: str) -> str:
    """Return source text in backticks, as every message quotes it."""
    return f"`{text}`" if "`" not in text else f"`` {text} ``"


def called_name(expr: m.Expr) -> str:
    """Return the name of the called function in backticks, with parentheses: `os.makedirs()`."""
    return code(f"{spell(expr)}()")


def callee_of(access: AtCall) -> str:
    """Return the name of the function that the call of an operation calls, as `called_name` does."""
    return called_name(access.call_site.call.function)


def destination(access: Access) -> str:
    """Return the path of an operation in backticks, or "the current directory"."""
    return "the current directory" if access.path_source == "'.'" else code(access.path_source)


def locked_here(lock: Access, found: Access, said: str = "") -> tuple[Related, ...]:
    """Return where a lock is taken, which shows that multiple processes run the code if nothing else does.

    Args:
        lock: The call that takes the lock.
        found: The operation that is reported.
        said: The message, if other evidence exists.
    """
    if found.evidence < Evidence.LIKELY:
        return (Related(lock.place, "the lock shows that multiple processes run this", Role.REASON),)
    return (Related(lock.place, said),) if said else ()


def tested(probe: ExistenceCheck, access: Access) -> Related:
    """Return a related place: the existence check before an operation."""
    answer = "missing" if probe.found_missing else "present"
    return Related(Place(access.file, probe.span), f"multiple processes can find it {answer}")


def created_after_check(kind: str, access: Access) -> str:
    """Return the message of a check-then-act race that creates a path.

    Args:
        kind: What the path is: "file", "directory", or the like.
        access: The operation that creates it.
    """
    return f"{kind} {code(access.path_source)} is created by {many(access)} after a separate existence check"


def done_at(access: Access) -> tuple[Related, ...]:
    """Return the calls that lead to an operation in a callee, and the call that runs the operation."""
    between = (called(call_site, "which calls this") for call_site in access.inlined_chain[1:-1])
    if access.call_site is access.leaf_call:
        return ()
    verb = _VERBS.get(access.op, "done")
    return (
        *between,
        called(access.leaf_call, f"{verb} here, by {called_name(access.leaf_call.call.function)}"),
    )


def check_then_act_witness(probe: ExistenceCheck | DirectoryListing, access: Access, error: str) -> Witness:
    """Return the interleaving in which two processes pass the same check, and the slower one fails.

    Args:
        probe: The existence check or the directory listing.
        access: The operation after it.
        error: The exception that the slower process raises.
    """
    return Witness(
        (
            WitnessStep(0, probe.path_source, probe.answer),
            WitnessStep(1, probe.path_source, probe.answer),
            WitnessStep(0, access.display, "done"),
            WitnessStep(1, access.display, error),
        ),
        f"the slower process fails with {code(error)}",
    )


def happens(step: Happening) -> Place:
    """Return the place of a call in an event sequence."""
    return Place(step.file, step.span)


_MISSING: Final = {
    "branch": "skips this branch",
    "exit": "leaves early",
    "loop": "runs a different number of iterations",
    "first": "waits until process 0 leaves the context",
    "function": "does not run this",
    "path": "has a different path",
}


def missed_collective_finding(rule: Rule, divergence: Divergence, remedy: FixTemplate) -> Finding:
    """Create a finding for a collective that some ranks do not call.

    Args:
        rule: The rule that reports it.
        divergence: The collective, and the code that makes the ranks diverge.
        remedy: The manual fix.
    """
    sync_point, how = divergence.sync_point, divergence.how
    here, away = (0, 1) if sync_point.is_for_main else (1, 0)
    dies = "fails before" if divergence.raises else _MISSING[how]
    return rule.finding(
        sync_point,
        _missed(divergence),
        witness=Witness(
            (
                WitnessStep(here, sync_point.display, f"waits for process {away}"),
                WitnessStep(away, divergence.test, dies),
            ),
            "the ranks that call it hang until a timeout",
        ),
        related=[
            *_source_of(divergence),
            Related(divergence.place, _DECIDING[how]),
            *_waiting_at(sync_point),
            *(related(later, "also skipped by those ranks") for later in divergence.later),
        ],
        fix=remedy.at(sync_point),
        strict=not divergence.certain,
        at_most=divergence.at_most,
    )


def _missed(divergence: Divergence) -> str:
    """Return the message: which ranks do not call a collective, and why."""
    sync_point, test = divergence.sync_point, code(divergence.test)
    collective = called_name(sync_point.call_site.call.function)
    if sync_point.call_site is not sync_point.leaf_call:
        collective += f" (which calls {called_name(sync_point.leaf_call.call.function)})"
    match divergence.how:
        case "path":
            return f"ranks can disagree on the path {test} that they pass to {collective}"
        case "first":
            return f"{collective} is called inside {test}, which the other ranks are still waiting to enter"
        case "function":
            return f"{collective} waits for all ranks, but only some ranks run {code(divergence.test + '()')}"
        case "loop":
            return (
                f"ranks can disagree on how many iterations over {test} call {collective}{_cause(divergence)}"
            )
    if divergence.is_by_error:
        if divergence.is_after_failure:
            return f"only ranks on which {test} fails reach {collective}"
        return f"ranks on which {test} fails never reach {collective}"
    if divergence.difference is not None and divergence.difference.kind == "rank":
        return f"only some ranks reach {collective}, depending on {test}"
    if divergence.source is None:
        return f"some ranks might skip {collective}: {test} can differ between ranks"
    check = f"the check {test} (line {divergence.place.span.line}) depends on {code(divergence.source.call)}"
    return f"some ranks might skip {collective}: {check}, which can differ between ranks"


def _cause(divergence: Divergence) -> str:
    """Return what decides how often a loop runs, if it is not in the test of the loop."""
    if divergence.source is not None:
        return f", which depends on {code(divergence.source.call)}"
    difference = divergence.difference
    by_rank = difference is not None and difference.kind == "rank"
    return f", depending on {code(spell(difference.expr))}" if difference is not None and by_rank else ""


_DECIDING: Final = {
    "branch": "this condition can differ between ranks",
    "exit": "this condition can differ between ranks",
    "loop": "the number of iterations can differ between ranks",
    "first": "the other ranks wait to enter this",
    "function": "only some ranks run this function",
    "path": "the path can differ between ranks",
}


def _source_of(divergence: Divergence) -> Iterable[Related]:
    """Yield the call whose result differs between ranks, if it is not in the condition itself."""
    if divergence.source is not None:
        yield Related(divergence.source.place, "this result can differ between ranks")


def _waiting_at(sync_point: Happening) -> Iterable[Related]:
    """Yield the call of the collective itself, if it is in a callee."""
    if sync_point.leaf_call is not sync_point.call_site:
        yield called(sync_point.leaf_call, "the ranks wait for each other here")


def double_create_witness(probe: ExistenceCheck, access: Access) -> Witness:
    """Return the interleaving in which two processes both find a path missing.

    The slower process fails if it creates a link or copies a tree. Otherwise it overwrites what the faster
    process created. If the code rejects an existing path, the slower process finds it present.

    Args:
        probe: The existence check.
        access: The operation that creates the path.
    """
    if access.op in {"link", "mkdir"} and not probe.refuses:
        return check_then_act_witness(probe, access, "FileExistsError")
    first = WitnessStep(0, probe.path_source, probe.answer)
    made = WitnessStep(0, access.display, "done")
    if probe.refuses:
        refused = WitnessStep(1, probe.path_source, str(probe.found_missing))
        return Witness(
            (first, made, refused),
            f"the slower process refuses {code(access.path_source)}, which the faster one just created",
        )
    spoiled = (
        WitnessStep(1, access.display, "truncates it and starts over"),
        WitnessStep(0, f"reads {code(access.path_source)}", "empty or partial"),
    )
    return Witness(
        (first, WitnessStep(1, probe.path_source, probe.answer), made, *spoiled),
        "another process can read it while it is empty or partial",
    )


def double_replace_witness(removal: Access, made: Access) -> Witness:
    """Return the interleaving in which two processes delete a path before either one recreates it."""
    return Witness(
        (
            WitnessStep(0, removal.display, "done"),
            WitnessStep(1, removal.display, "already removed"),
            WitnessStep(0, made.display, "done"),
            WitnessStep(1, made.display, "FileExistsError"),
        ),
        "the slower process fails with `FileExistsError`",
    )


def one_per_call(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Return one finding per call, preferably one that the default profile reports."""
    kept: dict[Place, Finding] = {}
    for finding in findings:
        known = kept.get(finding.place)
        if known is None or (known.strict and not finding.strict):
            kept[finding.place] = finding
    return kept.values()
