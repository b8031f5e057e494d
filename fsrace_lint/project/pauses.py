"""Sleeps that stand where an order between processes should."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsrace_lint.facts import model as m
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.bindings import children
from fsrace_lint.project.loops import all_in, calls_in, loops_in
from fsrace_lint.project.model import ASKING, Reach
from fsrace_lint.project.processes import ALL, MAIN, Runs, runs
from fsrace_lint.project.states import are_apart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.project.forms import Path
    from fsrace_lint.project.limits import Limits
    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.model import Site
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.sites import Sites
    from fsrace_lint.project.states import Event
    from fsrace_lint.project.values import Scope


class Wish(enum.Enum):
    """What a sleep is to bring about."""

    OTHERS_LATER = "all but the main process sleep, so that it is done first"
    ONE_BY_ONE = "each process sleeps for another time, so that they come one by one"
    SEEN_BY_ALL = "all sleep after a change, so that all see it"


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """A sleep on which the order of processes hangs.

    `site` is the sleep, `change` is the act before it that others shall see, where one was found, and
    `use` what needs the order.
    """

    site: Site
    wish: Wish
    use: Site
    change: Site | None = None

    @property
    def told(self) -> str:
        """The sleep as a witness tells it."""
        return spell(self.site.event.call)


class Pauses:
    """Finds the sleeps of functions that stand for a barrier."""

    def __init__(self, linker: Linker, sites: Sites, limits: Limits) -> None:
        """Prepare for a project."""
        self.linker = linker
        self.sites = sites
        self.limits = limits

    def of(self, function: LinkedFunction) -> Iterator[Pause]:
        """Give the sleeps of a function on which the order of processes hangs."""
        if self.linker.catalog.last_names["sleep"].isdisjoint(function.facts.mentions):
            return
        events = self.linker.events(function)
        in_turns = _calls_of_waiting_loops(function)
        for position, event in enumerate(events):
            if self.limits.is_sleep(event) and id(event.call) not in in_turns:
                yield from self._pause(event, events[:position], events[position + 1 :])

    def _pause(self, sleep: Event, before: tuple[Event, ...], after: tuple[Event, ...]) -> Iterator[Pause]:
        following = list(self._following(sleep, after))
        staggered = any(self._asks_rank(value, sleep.state.scope) for value in sleep.call.arguments)
        if staggered:
            uses = [use for use in following if use.act.op not in ASKING and use.is_contended]
            wish = Wish.ONE_BY_ONE
        elif not sleep.state.processes & MAIN:
            uses = [use for use in following if use.reach is not Reach.PRIVATE and self._joins(use, sleep)]
            wish = Wish.OTHERS_LATER
        else:
            yield from self._shown(sleep, before, following)
            return
        yield from (Pause(self._site(sleep, use), wish, use) for use in uses[:1])

    def _following(self, sleep: Event, after: tuple[Event, ...]) -> Iterator[Site]:
        """Give the acts after a sleep that processes come to from it without meeting in between."""
        for event in after:
            if are_apart(sleep.state.literals, event.state.literals):
                continue
            if self.sites.evidences.meets(event):
                return
            site = self._act(event)
            if site is not None:
                yield site

    def _act(self, event: Event) -> Site | None:
        act = self.sites.effects.act(event.call, event.state.scope)
        return None if act is None else self.sites.seen(event, act, event.state.scope)

    def _shown(self, sleep: Event, before: tuple[Event, ...], following: list[Site]) -> Iterator[Pause]:
        """Find a change that few make, and that all look for after the sleep."""
        if sleep.state.processes != ALL:
            return
        for event in reversed(before):
            if self.sites.evidences.meets(event):
                return
            change = self._act(event)
            if change is None or change.act.op in ASKING or change.path is None:
                continue
            for use in following:
                if use.act.op in ASKING and use.runs is not Runs.ONE and _shows(change, use):
                    yield Pause(self._site(sleep, use), Wish.SEEN_BY_ALL, use, change)
                    return

    def _site(self, sleep: Event, use: Site) -> Site:
        """Give the site of a sleep, which is about the path that needs the order."""
        return self.sites.seen(sleep, use.act, use.event.state.scope)

    @staticmethod
    def _joins(use: Site, sleep: Event) -> bool:
        """Tell whether a use is not made by the main process alone, which did not sleep."""
        return bool(use.event.state.processes & sleep.state.processes)

    def _asks_rank(self, expr: m.Expr, scope: Scope) -> bool:
        """Tell whether a time depends on the number of the process."""
        if self.linker.guards.rank_scope(expr, scope) in {"global", "local", "group", "filesystem"}:
            return True
        return any(self._asks_rank(child, scope) for child in children(expr))


def _shows(change: Site, use: Site) -> bool:
    """Tell whether a use looks for what others have changed: what one process made, or the parts of all."""
    if change.path is None or use.path is None:
        return False
    if change.reach is Reach.PRIVATE:
        return use.reach is not Reach.PRIVATE and change.path.is_within(use.path)
    few = runs(change.event.state.processes) in {Runs.ONE, Runs.PER_NODE}
    return few and _overlap(change.path, use.path)


def _overlap(one: Path, other: Path) -> bool:
    return one.is_within(other) or other.is_within(one)


def _calls_of_waiting_loops(function: LinkedFunction) -> set[int]:
    """Give the calls in loops that wait or try again: in `while`, or where a round can fail or be the last."""
    found: set[int] = set()
    for loop in loops_in(function.facts.body):
        leaving = (m.Try, m.Break, m.Return, m.Continue)
        if isinstance(loop, m.While) or any(isinstance(inner, leaving) for inner in all_in(loop.body)):
            found |= {id(call) for call in calls_in(loop.body)}
    return found
