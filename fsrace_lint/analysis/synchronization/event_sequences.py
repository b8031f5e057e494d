"""What happens in a function, in order: acts on the filesystem, and where processes meet.

Each function's sequence is found once. The calls of it that lead to others of
the project are replaced by what happens there, as it looks from the call.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import AtCall
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.callgraph.reaching_functions import leading
from fsrace_lint.analysis.dataflow.infeasible_paths import excludes
from fsrace_lint.analysis.dataflow.process_set import ALL, MAIN, SYNCHRONIZING, Processes
from fsrace_lint.analysis.values.call_arguments import arguments_of, given_for, holds
from fsrace_lint.analysis.values.constants import constant_passed
from fsrace_lint.catalog import argument
from fsrace_lint.engine.depth_budget import Followed
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.accesses import Sites
    from fsrace_lint.analysis.accesses.model import Act, Site
    from fsrace_lint.analysis.callgraph.concurrency import Sign
    from fsrace_lint.analysis.callgraph.reaching_functions import Leading
    from fsrace_lint.analysis.dataflow.abstract_state import Event, Literal
    from fsrace_lint.analysis.paths.abstract_path import Path
    from fsrace_lint.analysis.program.modules import LinkedFunction
    from fsrace_lint.analysis.synchronization.taint import Differences
    from fsrace_lint.catalog import Op
    from fsrace_lint.catalog.entries import CollectiveSaver

_DEEPEST: Final = 4
_LONGEST: Final = 200
_KINDS: Final = frozenset({"hasattr", "isinstance", "issubclass", "callable"})
_LEADING: Final = (*SYNCHRONIZING, "effect", "program", "run-once", "decorator", "first", "lock")


class Step(AtCall, Record, frozen=True, eq=False):
    """One thing that happens in a function: an act, or a meeting of all processes.

    `event` is the call in the function whose sequence it belongs to, `origin` the
    one that does it. `comers` are those that come to the call, of all that enter the
    function, and `processes` those of them that do it; `literals` is what was tested
    before it, from `event` down to `origin`. A meeting has its `meeting`, by which
    all must call the same; it is `certain` where nothing decides over it but whether
    there are several processes at all. `held` are the locks that are held there.
    """

    event: Event
    origin: Event
    comers: Processes
    processes: Processes
    literals: tuple[Literal, ...]
    held: tuple[m.Expr, ...]
    first: str | None
    act: Act | None = None
    path: Path | None = None
    meeting: str = ""
    certain: bool = True
    way: tuple[Event, ...] = ()
    sign: Sign | None = None
    evidence: Evidence = Evidence.EVIDENT

    @property
    def op(self) -> Op | None:
        """What it does; None for a meeting."""
        return None if self.act is None else self.act.op

    @property
    def is_for_main(self) -> bool:
        """Whether the main process comes here."""
        return bool(self.comers & MAIN)


class Sequences:
    """The sequences of a project's functions, each found once."""

    def __init__(self, sites: Sites, differences: Differences) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.sites = sites
        self.linker = sites.linker
        self.catalog = sites.linker.catalog
        self.propagation = sites.propagation
        self.differences = differences
        self._found: Followed[LinkedFunction, tuple[Step, ...]] = Followed((), _DEEPEST)
        self._standing: dict[LinkedFunction, tuple[Step | tuple[Event, LinkedFunction], ...]] = {}

    def may_lead(self, function: LinkedFunction) -> bool:
        """Tell whether anything can happen in a function, or in what it calls."""
        return function in self._leading.functions

    def of(self, function: LinkedFunction, depth: int = 0) -> tuple[Step, ...]:
        """Give what happens in a function and in what it calls, in order."""
        if not self.may_lead(function):
            return ()
        return self._found.get(function, depth, lambda: tuple(self._find(function, depth)))

    def _find(self, function: LinkedFunction, depth: int) -> Iterator[Step]:
        left = _LONGEST
        for item in self._items(function):
            for step in (item,) if isinstance(item, Step) else self._inlined(*item, depth):
                if left == 0:
                    return
                left -= 1
                yield step

    def _items(self, function: LinkedFunction) -> tuple[Step | tuple[Event, LinkedFunction], ...]:
        """Give the steps that stand in a function, and the calls in it of others that may have some."""
        if function not in self._standing:
            events = self.linker.events(function)
            self._standing[function] = tuple(item for event in events for item in self._read(event))
        return self._standing[function]

    def _read(self, event: Event) -> Iterator[Step | tuple[Event, LinkedFunction]]:
        called = last_name(event.call.function)
        if called not in self._leading.names:
            return
        scope = event.state.scope
        meeting, certain = self._meeting(event)
        if meeting:
            yield replace(self._here(event), meeting=meeting, certain=certain)
            return
        act = self.sites.act(event)
        if act is not None:
            done = replace(self._here(event), act=act, processes=self.sites.surroundings.acting(act, event))
            yield replace(done, path=self.linker.paths.normalize(act.path, scope))
            if act.op == "rename" and act.target is not None:
                made = replace(act, op="create", path=act.target, target=None)
                yield replace(done, act=made, path=self.linker.paths.normalize(act.target, scope))
            return
        callee = self.linker.resolver.callee(event.call, scope)
        if callee is not None and callee is not event.function and not callee.facts.is_generator:
            yield event, callee
            after = self.propagation.meets_after(callee)
            if after:
                yield replace(self._here(event), meeting=after)

    def _here(self, event: Event) -> Step:
        protection = self.propagation.protection
        processes = self.propagation.processes(event)
        literals, held = event.state.literals, protection.held(event)
        return Step(event, event, processes, processes, literals, held, protection.first(event))

    def _inlined(self, event: Event, callee: LinkedFunction, depth: int) -> Iterator[Step]:
        """Give what happens in a function, as it looks from a call of it."""
        steps = self.of(callee, depth + 1)
        if not steps:
            return
        here = self._here(event)
        allowed = here.processes & self.propagation.decorated(callee)
        ruled_out: dict[Event, bool] = {}
        for step in steps:
            if step.event not in ruled_out:
                ruled_out[step.event] = self._is_ruled_out(step.event, here.event, callee)
            if ruled_out[step.event]:
                continue
            yield replace(
                step,
                event=here.event,
                comers=here.comers,
                processes=step.processes & allowed,
                literals=(*here.literals, *step.literals),
                held=(*here.held, *step.held),
                first=step.first or here.first,
                path=self.sites.substituted(step.path, here.event, callee),
                certain=step.certain and (not step.meeting or self._is_certain(step)),
            )

    def _is_ruled_out(self, inner: Event, event: Event, callee: LinkedFunction) -> bool:
        """Tell whether a call passes a constant by which it never comes to another in the function."""
        if excludes(event, callee, inner.state):
            return True
        first = self.catalog.find("first", self.name_of(inner))
        if first is None or not first.rank:
            return False
        rank = given_for(inner.call, argument(first.rank))
        value = None if rank is None else constant_passed(rank, event.call, callee)
        return value is not None and isinstance(value.value, int) and value.value < 0

    def name_of(self, event: Event) -> str:
        """Name what is called as the catalog does."""
        entity = self.linker.resolver.entity(event.call.function, event.state.scope)
        return self.linker.resolver.type_name(entity) or f"*.{last_name(event.call.function)}"

    def _meeting(self, event: Event) -> tuple[str, bool]:
        """Name what a call waits for the others in, empty where it does not; and whether it always does."""
        name, called = self.name_of(event), last_name(event.call.function)
        once, first = self.catalog.find("run-once", name), self.catalog.find("first", name)
        saver: CollectiveSaver | None = self.catalog.find("collective-saver", name)
        if once is not None and once.barrier:
            return called, True
        if first is not None:
            return called if first.waits == "barrier" else "", True
        if saver is not None:
            ordinary = bool(saver.unless) and holds(saver.unless, event.call)
            return "" if ordinary else called, saver.when == "always"
        collective = self.catalog.find("collective", name)
        always = collective is None or bool(collective.when == "always")
        meets = self.catalog.is_any(SYNCHRONIZING, name) and (always or not _gives_loaders(event.call))
        return called if meets else "", always

    def site(self, step: Step) -> Site | None:
        """Give the site of what happens in a function; None for what is no act."""
        act, seen = step.act, self.sites.seen_so
        return None if act is None else seen(act, step.event, step.origin, step.path, step.processes)

    def is_save(self, event: Event) -> bool:
        """Tell whether a call saves what all processes hold, each its part, under one path."""
        return self.catalog.find("collective-saver", self.name_of(event)) is not None

    def _is_certain(self, step: Step) -> bool:
        """Tell whether nothing decides over a meeting but whether there are several processes."""
        return all(self._is_about_setup(literal) for literal in step.event.state.literals)

    def _is_about_setup(self, literal: Literal) -> bool:
        """Tell whether a test asks for several processes, or only what kind of object there is."""
        if isinstance(literal.test, m.Call) and last_name(literal.test.function) in _KINDS:
            return True
        return self.linker.guards.split(literal.test, literal.scope) != (ALL, ALL)

    @functools.cached_property
    def _leading(self) -> Leading:
        """The functions that may lead to an act or a meeting, as far as that is followed."""
        return leading(self.propagation, _LEADING, _DEEPEST + 1)


def _gives_loaders(call: m.Call) -> bool:
    """Tell whether all that a call is given are loaders of data, by their names: no model to divide."""
    given = [last_name(value).lower() for _, _, value in arguments_of(call)]
    return bool(given) and all(name.endswith("loader") for name in given)
