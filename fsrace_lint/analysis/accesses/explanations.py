"""Why a site is no finding: what the program believes of it, and where that stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.explanation_places import ExplanationPlaces, place_of
from fsrace_lint.analysis.accesses.model import Reach
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.process_set import FIRST, Runs, runs
from fsrace_lint.files.spans import Place
from fsrace_lint.syntax.ast_names import parts
from fsrace_lint.syntax.builtin_exceptions import handles
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

    def __init__(self, entry_states: EntryStates) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.entry_states = entry_states
        self.protection = entry_states.protection
        self.flows = entry_states.flows
        self.causes = ExplanationPlaces(entry_states)

    def reason(self, access: Access) -> Reason:
        """Tell what keeps a site silent.

        Args:
            access: A site that no rule reported.

        Returns:
            The reason that decides most; `unexposed` where there is none and no rule looks for this.
        """
        return (
            self._by_nature(access)
            or self._guarded(access)
            or self._private(access)
            or self._locked(access)
            or self._handled(access)
            or self._ordered(access)
            or self._preceded(access)
            or self._unproven(access)
        )

    @staticmethod
    def _by_nature(access: Access) -> Reason | None:
        """What the call does makes it safe, whoever runs it."""
        if access.operation.tolerant:
            return Reason("tolerant", _ACCEPTED.get(access.op, "what another process did is accepted"))
        if access.operation.synchronized:
            return Reason("synchronized", f"{_doer(access)} holds several processes apart by itself")
        if access.operation.exclusive and access.op == "write":
            return Reason("exclusive", "one process alone can create it, the others fail")
        return None

    @staticmethod
    def _preceded(access: Access) -> Reason | None:
        if access.claimed_by is None:
            return None
        place = Place(access.claimed_by.file, access.claimed_by.span)
        return Reason(
            "preceded", f"{access.claimed_by.callee} comes first and leaves nothing to race for", place
        )

    def _guarded(self, access: Access) -> Reason | None:
        if access.runs not in {Runs.ONE, Runs.PER_NODE}:
            return None
        operation, scope = access.operation, access.leaf_call.state.scope
        if operation.only is not None and runs(FIRST[operation.only]) is access.runs:
            return Reason(
                "guard", f"{_doer(access)} does it on {access.runs.value} alone", _elsewhere(access)
            )
        if (
            operation.condition is not None
            and runs(self.entry_states.rank_tests.partition(operation.condition, scope)[0]) is access.runs
        ):
            text = f"{spell(operation.condition)} lets {access.runs.value} do it"
            return Reason("guard", text, place_of(access.leaf_call))
        return self._guarded_here(access) or self._guarded_below(access) or Reason("guard", _who(access))

    def _guarded_here(self, access: Access) -> Reason | None:
        """Find the guard around the call from which a site is seen, or around the callers."""
        place, step = self.causes.nearest(access.call_site, lambda step: self.causes.guard(step, access.runs))
        if step is None or place is None:
            return None
        facts = step.call_site.function.facts
        if self.entry_states.hooks.of(step.call_site.function) is not None and place.span == facts.span:
            return Reason("guard", f"the framework calls {facts.name} in {access.runs.value}", place)
        callers = ", whoever calls it" if step.is_one_of_several else ""
        return Reason("guard", _who(access) + callers, place)

    def _guarded_below(self, access: Access) -> Reason | None:
        """Find the guard between the call from which a site is seen and the one that does it."""
        for call_site in access.inlined_chain[1:]:
            place = self.causes.guard_at(call_site, access.runs)
            if place is not None:
                return Reason("guard", f"{access.runs.value} gets to {_doer(access)}", place)
        return None

    def _private(self, access: Access) -> Reason | None:
        if access.reach is not Reach.PRIVATE or not self._is_private_throughout(access):
            return None
        whose = "each process has its own path"
        own = (
            next((symbol.text for symbol in access.path.variables() if symbol.rank_dependent), "")
            if access.path
            else ""
        )
        place, step = self.causes.nearest(access.call_site, self.causes.passed)
        if own:
            return Reason("private", f"{whose}: {own} differs", self._source(access) or place)
        callers = "the caller passes it" if _is_only(step) else "every caller passes one"
        return Reason("private", f"{whose}: {callers}", place)

    def _is_private_throughout(self, access: Access) -> bool:
        """Tell whether a rename has both its paths for itself; whatever else has one."""
        if access.op != "rename":
            return True
        others = (value for value in access.leaf_call.call.arguments if value is not access.operation.path)
        target = access.operation.target or next(others, None)
        path = (
            None
            if target is None
            else self.entry_states.paths.normalize(target, access.leaf_call.state.scope)
        )
        return path is not None and path.rank_dependent

    def _source(self, access: Access) -> Place | None:
        """Find the call that gives each process another value for its path."""
        values = (
            (access.operation.path,) if access.call_site is access.leaf_call else parts(access.call_site.call)
        )
        scope = access.call_site.state.scope
        found = (self.causes.private(value, scope) for value in values)
        here = next(filter(None, found), None)
        return here or self.causes.private(access.operation.path, access.leaf_call.state.scope)

    def _locked(self, access: Access) -> Reason | None:
        if not access.locked:
            return None
        for call_site in access.inlined_chain:
            held = self.protection.held(call_site)
            if held:
                return Reason("lock", f"{spell(held[0])} is held", self.causes.lock_at(call_site))
        place, step = self.causes.nearest(access.call_site, self.causes.lock)
        who = "the caller" if _is_only(step) else "every caller"
        return Reason("lock", f"{who} holds a lock", place)

    def _handled(self, access: Access) -> Reason | None:
        error = _ERRORS.get(access.op)
        if error is None or not access.tolerates(error):
            return None
        tolerating = _tolerating(access, error)
        for call_site in access.inlined_chain:
            place = self.causes.handler_at(call_site, tolerating)
            if place is not None:
                return Reason("handled", f"{error} is handled", place)
        place, step = self.causes.nearest(
            access.call_site, lambda step: self.causes.handler(step, tolerating)
        )
        callers = "" if _is_only(step) else " by every caller"
        return Reason("handled", f"{error} is handled{callers}", place)

    def _ordered(self, access: Access) -> Reason | None:
        if access.serialized_by is None:
            return None
        who = _FIRST.get(access.serialized_by, "the main process")
        place, _ = self.causes.nearest(access.call_site, self.causes.first)
        return Reason("first", f"{who} is done here before the others begin", place)

    @staticmethod
    def _unproven(access: Access) -> Reason:
        """What a site lacks for a finding, though nothing speaks for it."""
        op = access.op
        if op == "link":
            return Reason("unexposed", "no rule reports a link without a test or a removal before it")
        if op == "rename" and access.reach is Reach.PRIVATE:
            return Reason("unexposed", "no rule reports what a rename makes of a path of one's own")
        if op not in _ALONE:
            return Reason("unexposed", f"no rule reports a {op}")
        if op in {"write", "delete", "rename"} and access.path is None:
            return Reason("unknown", f"what {_bare(access.path_source)} holds could not be followed")
        if access.evidence is Evidence.NONE:
            return Reason("unproven", "nothing shows that several processes run this script")
        if access.evidence is not Evidence.EVIDENT:
            return Reason("unproven", "nothing shows that several processes run it")
        return Reason("unexposed", f"no rule that is on reports this {op}")


def _doer(access: Access) -> str:
    """The function that does it, as the source spells it."""
    return spell(access.leaf_call.call.function)


def _elsewhere(access: Access) -> Place | None:
    """The call that does it, where the site is seen from another."""
    return None if access.call_site is access.leaf_call else place_of(access.leaf_call)


def _who(access: Access) -> str:
    return f"{access.runs.value} comes here"


def _is_only(step: ExplanationStep | None) -> bool:
    """Tell whether what was found holds for one way to a site, and not for one of several."""
    return step is not None and not step.is_one_of_several


def _tolerating(access: Access, error: str) -> Callable[[frozenset[str]], bool]:
    """Tell of some handled exceptions whether losing the race does no harm with them."""
    return lambda caught: access.operation.tolerant or handles(caught, error)


def _bare(spelled: str) -> str:
    """Take the braces off a path that is one name."""
    inner = spelled[1:-1]
    return inner if spelled == f"{{{inner}}}" and "{" not in inner and "}" not in inner else spelled
