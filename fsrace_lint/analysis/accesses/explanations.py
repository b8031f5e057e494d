"""Reasons why an access is not reported, and the places that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.accesses.explanation_places import ExplanationPlaces, place_in, place_of
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
    from fsrace_lint.analysis.values.abstract_values import Expression

_WEAK: Final = frozenset({"unproven", "unknown", "unexposed"})
_ERRORS: Final = {
    "mkdir": "FileExistsError",
    "link": "FileExistsError",
    "delete": "FileNotFoundError",
    "rename": "FileNotFoundError",
}
_ACCEPTED: Final = {
    "mkdir": "an existing directory is accepted",
    "delete": "a missing path is accepted",
}
_ALONE: Final = frozenset({"mkdir", "write", "copy", "delete", "rename", "link", "extract", "download"})
"""The operations that rules report without a check before them."""
_FIRST: Final = {"local": "local rank 0 of each node", "group": "rank 0 of each group"}


class Reason(Record, frozen=True):
    """Why an access is not reported.

    Attributes:
        kind: The reason in one word.
        text: The reason in a sentence.
        place: The place that shows it, if any.
    """

    kind: str
    text: str
    place: Place | None = None

    @property
    def is_weak(self) -> bool:
        """Whether nothing shows that the access is safe, and too little shows that it is not."""
        return self.kind in _WEAK


class Explanations:
    """Finds the reasons why accesses are not reported, strongest first."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.entry_states = entry_states
        self.protection = entry_states.protection
        self.flows = entry_states.flows
        self.causes = ExplanationPlaces(entry_states)

    def reason(self, access: Access) -> Reason:
        """Return why an access is not reported.

        Args:
            access: An access that no rule reports.

        Returns:
            The strongest reason, or `unexposed` if there is none and no rule covers such an access.
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
        """Return a reason if the operation itself is safe, whichever processes run it."""
        if access.operation.tolerant:
            return Reason("tolerant", _ACCEPTED.get(access.op, "the result of another process is accepted"))
        if access.operation.synchronized:
            return Reason("synchronized", f"{_doer(access)} coordinates processes itself")
        if access.operation.exclusive and access.op == "write":
            return Reason("exclusive", "only one process can create it; the other processes fail")
        return None

    @staticmethod
    def _preceded(access: Access) -> Reason | None:
        if access.claimed_by is None:
            return None
        place = Place(access.claimed_by.file, access.claimed_by.span)
        return Reason(
            "preceded", f"`{access.claimed_by.callee}()` runs first and leaves nothing to race for", place
        )

    def _guarded(self, access: Access) -> Reason | None:
        if access.runs not in {Runs.ONE, Runs.PER_NODE}:
            return None
        operation, scope = access.operation, access.leaf_call.state.scope
        if operation.only is not None and runs(FIRST[operation.only]) is access.runs:
            return Reason("guard", f"{_doer(access)} does it on {access.runs.value} only", _elsewhere(access))
        if (
            operation.condition is not None
            and runs(self.entry_states.rank_tests.partition(operation.condition, scope)[0]) is access.runs
        ):
            text = f"`{spell(operation.condition)}` lets only {access.runs.value} do it"
            return Reason("guard", text, place_of(access.leaf_call))
        return self._guarded_here(access) or self._guarded_below(access) or Reason("guard", _who(access))

    def _guarded_here(self, access: Access) -> Reason | None:
        """Return the rank check around the call site of an access, or around its callers."""
        place, step = self.causes.nearest(access.call_site, lambda step: self.causes.guard(step, access.runs))
        if step is None or place is None:
            return None
        facts = step.call_site.function.facts
        if self.entry_states.hooks.of(step.call_site.function) is not None and place.span == facts.span:
            return Reason("guard", f"the framework calls `{facts.name}()` in {access.runs.value}", place)
        callers = ", regardless of the caller" if step.is_one_of_several else ""
        return Reason("guard", _who(access) + callers, place)

    def _guarded_below(self, access: Access) -> Reason | None:
        """Return the rank check between the call site and the leaf call of an access."""
        for call_site in access.inlined_chain[1:]:
            place = self.causes.guard_at(call_site, access.runs)
            if place is not None:
                return Reason("guard", f"only {access.runs.value} reaches {_doer(access)}", place)
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
            return Reason("private", f"{whose}: `{own}` differs", self.source(access) or place)
        callers = "the caller passes it" if _is_only(step) else "every caller passes one"
        return Reason("private", f"{whose}: {callers}", place)

    def _is_private_throughout(self, access: Access) -> bool:
        """Return whether all paths of an access are private; a rename has two."""
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

    def sources(self, access: Access) -> tuple[Expression, ...]:
        """Return the calls that give each process a different path, the one of the reason last."""
        values = (
            (access.operation.path,) if access.call_site is access.leaf_call else parts(access.call_site.call)
        )
        scope = access.call_site.state.scope
        found = (self.causes.private(value, scope) for value in values)
        here = next(filter(None, found), ())
        return here or self.causes.private(access.operation.path, access.leaf_call.state.scope)

    def source(self, access: Access) -> Place | None:
        """Return the place of the call that gives each process a different path, if it is known."""
        return next(map(place_in, self.sources(access)[-1:]), None)

    def _locked(self, access: Access) -> Reason | None:
        if not access.locked:
            return None
        for call_site in access.inlined_chain:
            held = self.protection.held(call_site)
            if held:
                return Reason("lock", f"`{spell(held[0])}` is held", self.causes.lock_at(call_site))
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
                return Reason("handled", f"`{error}` is handled", place)
        place, step = self.causes.nearest(
            access.call_site, lambda step: self.causes.handler(step, tolerating)
        )
        callers = "" if _is_only(step) else " by every caller"
        return Reason("handled", f"`{error}` is handled{callers}", place)

    def _ordered(self, access: Access) -> Reason | None:
        if access.serialized_by is None:
            return None
        who = _FIRST.get(access.serialized_by, "rank 0")
        place, _ = self.causes.nearest(access.call_site, self.causes.first)
        return Reason("first", f"{who} finishes this before the other processes start", place)

    @staticmethod
    def _unproven(access: Access) -> Reason:
        """Return what is missing for a finding, if the access is not shown to be safe."""
        op = access.op
        if access.operation.empty:
            return Reason("empty", "the file is empty, so no process can read a part of it")
        if op == "link":
            return Reason("unexposed", "no rule reports a link without a check or a removal before it")
        if op == "rename" and access.reach is Reach.PRIVATE:
            return Reason("unexposed", "no rule reports a rename of a private path")
        if op not in _ALONE:
            return Reason("unexposed", f"no rule reports a {op}")
        if op in {"write", "delete", "rename"} and access.path is None:
            return Reason("unknown", f"the value of `{_bare(access.path_source)}` is unknown")
        if access.evidence is Evidence.NONE:
            return Reason("unproven", "nothing shows that multiple processes run this script")
        if access.evidence < Evidence.LIKELY:
            return Reason("unproven", "nothing shows that multiple processes run this code")
        return Reason("unexposed", f"no enabled rule reports this {op}")


def _doer(access: Access) -> str:
    """Return the function of the leaf call, as spelled in the source."""
    return f"`{spell(access.leaf_call.call.function)}()`"


def _elsewhere(access: Access) -> Place | None:
    """Return the place of the leaf call if it is not the call site."""
    return None if access.call_site is access.leaf_call else place_of(access.leaf_call)


def _who(access: Access) -> str:
    return f"only {access.runs.value} runs this"


def _is_only(step: ExplanationStep | None) -> bool:
    """Return whether a step is on the only path in the call graph to an access."""
    return step is not None and not step.is_one_of_several


def _tolerating(access: Access, error: str) -> Callable[[frozenset[str]], bool]:
    """Return a function that checks whether losing the race is harmless if some exceptions are handled."""
    return lambda caught: access.operation.tolerant or handles(caught, error)


def _bare(spelled: str) -> str:
    """Strip the braces of a path that is a single name."""
    inner = spelled[1:-1]
    return inner if spelled == f"{{{inner}}}" and "{" not in inner and "}" not in inner else spelled
