"""Why a site is no finding: what the program believes of it, and where that stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.model import Evidence, Reach
from fsrace_lint.project.processes import ALL, Runs, runs
from fsrace_lint.spans import Place

if TYPE_CHECKING:
    from fsrace_lint.project.model import Site
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.propagate import Propagation
    from fsrace_lint.project.states import Event
    from fsrace_lint.spans import Span

_CALLERS_DEPTH: Final = 6
_WEAK: Final = frozenset({"unproven", "unknown", "unexposed"})
_ERRORS: Final = {"mkdir": "FileExistsError", "delete": "FileNotFoundError"}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a site is silent: `kind` in one word, `text` in a sentence, `place` where it stands."""

    kind: str
    text: str
    place: Place | None = None

    @property
    def is_weak(self) -> bool:
        """Whether nothing speaks for the site; too little speaks against it."""
        return self.kind in _WEAK


class Silences:
    """Finds the reasons for silence, the strongest first."""

    def __init__(self, propagation: Propagation) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.propagation = propagation
        self.protection = propagation.protection
        self.linker = propagation.linker

    def reason(self, site: Site) -> Reason:
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
            or self._unproven(site)
        )

    @staticmethod
    def _by_nature(site: Site) -> Reason | None:
        """What the call does makes it safe, whoever runs it."""
        if site.act.tolerant:
            return Reason("tolerant", f"{site.callee} accepts what another process did")
        if site.act.synchronized:
            return Reason("synchronized", f"{site.callee} holds several processes apart by itself")
        if site.act.exclusive and site.act.op == "write":
            return Reason("exclusive", "one process alone can create it, the others fail")
        return None

    def _guarded(self, site: Site) -> Reason | None:
        if site.runs not in {Runs.ONE, Runs.PER_NODE}:
            return None
        if site.act.only is not None and runs(site.own) is site.runs:
            return Reason("guard", f"{site.callee} writes on {site.runs.value} alone")
        place = self._guard(site.event, site.runs, 0) or self._guard(site.origin, site.runs, 0)
        return Reason("guard", f"{site.runs.value} comes here", place)

    def _guard(self, event: Event, wanted: Runs, depth: int) -> Place | None:
        """Find the test, the decorator or the caller that lets so few processes come to a call."""
        function = event.function
        reached = ALL
        for literal in event.state.literals:
            reached &= self.propagation.deciding(literal)
            if runs(reached) is wanted:
                span = _span_of(literal.test) if literal.branch is None else literal.branch.span
                return Place(function.module.path, span or event.call.span)
        if runs(event.state.processes) is wanted:
            return Place(function.module.path, event.call.span)
        return self._guard_of(function, wanted, depth)

    def _guard_of(self, function: LinkedFunction, wanted: Runs, depth: int) -> Place | None:
        """Find what lets so few processes into a function, the first of its callers that shows it."""
        if runs(self.propagation.decorated(function)) is wanted:
            return Place(function.module.path, function.facts.span)
        if depth < _CALLERS_DEPTH:
            for edge in self.propagation.edges(function):
                place = Place(edge.event.function.module.path, edge.event.call.span)
                if runs(edge.only) is wanted:
                    return place
                found = self._guard(edge.event, wanted, depth + 1)
                if found is not None:
                    return found
        return None

    def _private(self, site: Site) -> Reason | None:
        if site.reach is not Reach.PRIVATE:
            return None
        own = [symbol.text for symbol in site.path.symbols() if symbol.private] if site.path else []
        what = f"{own[0]} is in its name" if own else "every caller passes a path of its own"
        return Reason("private", f"each process has its own path: {what}")

    def _locked(self, site: Site) -> Reason | None:
        if not site.locked:
            return None
        held = self.protection.held(site.event)
        span = next(filter(None, map(_span_of, held)), None)
        text = f"{spell(held[0])} is held" if held else "every caller holds a lock"
        return Reason("lock", text, None if span is None else Place(site.file, span))

    def _handled(self, site: Site) -> Reason | None:
        error = _ERRORS.get(site.act.op)
        if error is None or not site.tolerates(error):
            return None
        span = self.protection.handling(site.event)
        return Reason("handled", f"{error} is handled", None if span is None else Place(site.file, span))

    @staticmethod
    def _ordered(site: Site) -> Reason | None:
        if not site.is_ordered:
            return None
        return Reason("first", f"the first process ({site.first}) is done here before the others begin")

    @staticmethod
    def _unproven(site: Site) -> Reason:
        if site.evidence is not Evidence.EVIDENT:
            return Reason("unproven", "nothing shows that several processes run it")
        if site.path is None or not site.certain:
            return Reason("unknown", f"what {site.spelled} holds could not be followed")
        return Reason("unexposed", f"no rule reports {site.act.op} by itself")


def _span_of(expr: m.Expr) -> Span | None:
    """Give the place of an expression, which only calls have, within it."""
    match expr:
        case m.Call(span=span):
            return span
        case m.Not(value=value) | m.Attribute(value=value) | m.Subscript(value=value):
            return _span_of(value)
        case m.Compare(left=left, rights=rights):
            return next(filter(None, map(_span_of, (left, *rights))), None)
        case m.Boolean(values=values):
            return next(filter(None, map(_span_of, values)), None)
        case _:
            return None
