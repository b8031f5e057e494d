"""Why a site is no finding: what the program believes of it, and where that stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.explanation_places import ExplanationPlaces, place_of
from fsrace_lint.analysis.accesses.model import Reach, is_handled
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.process_set import FIRST, Runs, runs
from fsrace_lint.files.spans import Place
from fsrace_lint.syntax.ast_names import parts
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Callable

    from fsrace_lint.analysis.accesses.explanation_places import ExplanationStep
    from fsrace_lint.analysis.accesses.model import Access
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates

_WEAK: Final = frozenset({"unproven", "unknown", "unexposed"})
_ERRORS: Final = {
    "mkdir": "FileExistsError",
    "link": "FileExistsError",
    "delete": "FileNotFoundError",
    "rename": "FileNotFoundError",
}
_ACCEPTED: Final = {
    "mkdir": "a directory that is there already is accepted",
    "delete": "it is accepted that it is gone already",
}
_ALONE: Final = frozenset({"mkdir", "write", "copy", "delete", "rename", "link", "extract", "download"})
"""The operations that rules report without a test before them."""
_FIRST: Final = {"local": "the main process of each node", "group": "the first process of each group"}


class Reason(Record, frozen=True):
    """Why a site is silent: `kind` in one word, `text` in a sentence, `place` where it stands."""

    kind: str
    text: str
    place: Place | None = None

    @property
    def is_weak(self) -> bool:
        """Whether nothing speaks for the site; too little speaks against it."""
        return self.kind in _WEAK


class Explanations:
    """Finds the reasons for silence, the strongest first."""

    def __init__(self, propagation: EntryStates) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.propagation = propagation
        self.protection = propagation.protection
        self.linker = propagation.linker
        self.causes = ExplanationPlaces(propagation)

    def reason(self, site: Access) -> Reason:
        """Tell what keeps a site silent.

        Args:
            site: A site that no rule reported.

        Returns:
            The reason that decides most; `unexposed` where there is none and no rule looks for this.
        """
        return (
            self._by_nature(site)
            or self._guarded(site)
            or self._private(site)
            or self._locked(site)
            or self._handled(site)
            or self._ordered(site)
            or self._preceded(site)
            or self._unproven(site)
        )

    @staticmethod
    def _by_nature(site: Access) -> Reason | None:
        """What the call does makes it safe, whoever runs it."""
        if site.operation.tolerant:
            return Reason(
                "tolerant", _ACCEPTED.get(site.operation.op, "what another process did is accepted")
            )
        if site.operation.synchronized:
            return Reason("synchronized", f"{_doer(site)} holds several processes apart by itself")
        if site.operation.exclusive and site.operation.op == "write":
            return Reason("exclusive", "one process alone can create it, the others fail")
        return None

    @staticmethod
    def _preceded(site: Access) -> Reason | None:
        if site.claimed_by is None:
            return None
        place = Place(site.claimed_by.file, site.claimed_by.span)
        return Reason(
            "preceded", f"{site.claimed_by.callee} comes first and leaves nothing to race for", place
        )

    def _guarded(self, site: Access) -> Reason | None:
        if site.runs not in {Runs.ONE, Runs.PER_NODE}:
            return None
        act, scope = site.operation, site.leaf_call.state.scope
        if act.only is not None and runs(FIRST[act.only]) is site.runs:
            return Reason("guard", f"{_doer(site)} does it on {site.runs.value} alone", _elsewhere(site))
        if (
            act.condition is not None
            and runs(self.linker.guards.partition(act.condition, scope)[0]) is site.runs
        ):
            text = f"{spell(act.condition)} lets {site.runs.value} do it"
            return Reason("guard", text, place_of(site.leaf_call))
        return self._guarded_here(site) or self._guarded_below(site) or Reason("guard", _who(site))

    def _guarded_here(self, site: Access) -> Reason | None:
        """Find the guard around the call from which a site is seen, or around the callers."""
        place, step = self.causes.nearest(site.call_site, lambda step: self.causes.guard(step, site.runs))
        if step is None or place is None:
            return None
        facts = step.event.function.facts
        if self.propagation.hooks.of(step.event.function) is not None and place.span == facts.span:
            return Reason("guard", f"the framework calls {facts.name} in {site.runs.value}", place)
        callers = ", whoever calls it" if step.is_one_of_several else ""
        return Reason("guard", _who(site) + callers, place)

    def _guarded_below(self, site: Access) -> Reason | None:
        """Find the guard between the call from which a site is seen and the one that does it."""
        for event in site.inlined_chain[1:]:
            place = self.causes.guard_at(event, site.runs)
            if place is not None:
                return Reason("guard", f"{site.runs.value} gets to {_doer(site)}", place)
        return None

    def _private(self, site: Access) -> Reason | None:
        if site.reach is not Reach.PRIVATE or not self._is_private_throughout(site):
            return None
        whose = "each process has its own path"
        own = (
            next((symbol.text for symbol in site.path.variables() if symbol.rank_dependent), "")
            if site.path
            else ""
        )
        place, step = self.causes.nearest(site.call_site, self.causes.passed)
        if own:
            return Reason("private", f"{whose}: {own} differs", self._source(site) or place)
        callers = "the caller passes it" if _is_only(step) else "every caller passes one"
        return Reason("private", f"{whose}: {callers}", place)

    def _is_private_throughout(self, site: Access) -> bool:
        """Tell whether a rename has both its paths for itself; whatever else has one."""
        if site.operation.op != "rename":
            return True
        others = (value for value in site.leaf_call.call.arguments if value is not site.operation.path)
        target = site.operation.target or next(others, None)
        path = None if target is None else self.linker.paths.normalize(target, site.leaf_call.state.scope)
        return path is not None and path.rank_dependent

    def _source(self, site: Access) -> Place | None:
        """Find the call that gives each process another value for its path."""
        values = (site.operation.path,) if site.call_site is site.leaf_call else parts(site.call_site.call)
        scope = site.call_site.state.scope
        found = (self.causes.private(value, scope) for value in values)
        here = next(filter(None, found), None)
        return here or self.causes.private(site.operation.path, site.leaf_call.state.scope)

    def _locked(self, site: Access) -> Reason | None:
        if not site.locked:
            return None
        for event in site.inlined_chain:
            held = self.protection.held(event)
            if held:
                return Reason("lock", f"{spell(held[0])} is held", self.causes.lock_at(event))
        place, step = self.causes.nearest(site.call_site, self.causes.lock)
        who = "the caller" if _is_only(step) else "every caller"
        return Reason("lock", f"{who} holds a lock", place)

    def _handled(self, site: Access) -> Reason | None:
        error = _ERRORS.get(site.operation.op)
        if error is None or not site.tolerates(error):
            return None
        tolerating = _tolerating(site, error)
        for event in site.inlined_chain:
            place = self.causes.handler_at(event, tolerating)
            if place is not None:
                return Reason("handled", f"{error} is handled", place)
        place, step = self.causes.nearest(site.call_site, lambda step: self.causes.handler(step, tolerating))
        callers = "" if _is_only(step) else " by every caller"
        return Reason("handled", f"{error} is handled{callers}", place)

    def _ordered(self, site: Access) -> Reason | None:
        if site.serialized_by is None:
            return None
        who = _FIRST.get(site.serialized_by, "the main process")
        place, _ = self.causes.nearest(site.call_site, self.causes.first)
        return Reason("first", f"{who} is done here before the others begin", place)

    @staticmethod
    def _unproven(site: Access) -> Reason:
        """What a site lacks for a finding, though nothing speaks for it."""
        op = site.operation.op
        if op == "link":
            return Reason("unexposed", "no rule reports a link without a test or a removal before it")
        if op == "rename" and site.reach is Reach.PRIVATE:
            return Reason("unexposed", "no rule reports what a rename makes of a path of one's own")
        if op not in _ALONE:
            return Reason("unexposed", f"no rule reports a {op}")
        if op in {"write", "delete", "rename"} and site.path is None:
            return Reason("unknown", f"what {_bare(site.path_source)} holds could not be followed")
        if site.evidence is Evidence.NONE:
            return Reason("unproven", "nothing shows that several processes run this script")
        if site.evidence is not Evidence.EVIDENT:
            return Reason("unproven", "nothing shows that several processes run it")
        return Reason("unexposed", f"no rule that is on reports this {op}")


def _doer(site: Access) -> str:
    """The function that does it, as the source spells it."""
    return spell(site.leaf_call.call.function)


def _elsewhere(site: Access) -> Place | None:
    """The call that does it, where the site is seen from another."""
    return None if site.call_site is site.leaf_call else place_of(site.leaf_call)


def _who(site: Access) -> str:
    return f"{site.runs.value} comes here"


def _is_only(step: ExplanationStep | None) -> bool:
    """Tell whether what was found holds for one way to a site, and not for one of several."""
    return step is not None and not step.is_one_of_several


def _tolerating(site: Access, error: str) -> Callable[[frozenset[str]], bool]:
    """Tell of some handled exceptions whether losing the race does no harm with them."""
    return lambda caught: site.operation.tolerant or is_handled(error, caught)


def _bare(spelled: str) -> str:
    """Take the braces off a path that is one name."""
    inner = spelled[1:-1]
    return inner if spelled == f"{{{inner}}}" and "{" not in inner and "}" not in inner else spelled
