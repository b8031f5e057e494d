"""Loops that poll for a path, and helpers that poll for what they are passed."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.model import ASKING, LOOKING, Reach
from fsrace_lint.analysis.dataflow.loops import asked_by, calls_in, loops_in
from fsrace_lint.analysis.dataflow.process_set import Runs
from fsrace_lint.analysis.synchronization.wait_limits import WaitLimit, WaitLimits
from fsrace_lint.analysis.values.call_arguments import bind
from fsrace_lint.catalog.lexicon import says
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.modules import LinkedFunction
from fsrace_lint.program.relevance import EVERYTHING
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import all_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.accesses.accesses import Accesses
    from fsrace_lint.analysis.accesses.model import Access, Operation
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.dataflow.loops import LoopStatement
    from fsrace_lint.analysis.values.abstract_values import Environment


class Poll(Record, frozen=True, eq=False):
    """A wait that polls for a path.

    Attributes:
        access: The check of the path, or the call that passes it to a helper.
        is_for_presence: Whether it waits until the path exists. If False, until it is gone.
        limit: The timeout.
        is_ordered: Whether all ranks synchronize before it, with no change since then.
        looked: The call of the same check before the loop, if any.
        at_call: Whether `access` is a call of a function that waits for the path that it is passed.
        is_named: Whether a part of the file name is literal, here or at the calls that pass the path.
        is_left: Whether the function creates the path itself and never deletes it, although an old one means
            nothing: the path has a literal name, or it is a marker that the function does not check for.
        is_marker: Whether the function creates the path itself, as a file that only shows that it exists.
    """

    access: Access
    is_for_presence: bool
    limit: WaitLimit
    is_ordered: bool
    looked: CallSite | None = None
    at_call: bool = False
    is_named: bool = False
    is_left: bool = False
    is_marker: bool = False

    @property
    def is_for_others(self) -> bool:
        """Whether another process can create or delete the path in the meantime."""
        return self.access.reach is not Reach.PRIVATE and not self.access.locked

    @property
    def is_minor(self) -> bool:
        """Whether the wait probably does no harm.

        A helper is passed the path, and other code decides how long it exists. Or one process of the job
        waits, for the other ranks or for another job. Or the path is a marker whose old ones mean something.
        """
        is_handed = self.at_call and not self.is_left
        return is_handed or self.access.runs is Runs.ONE or (self.is_marker and not self.is_left)

    @property
    def is_for_lock(self) -> bool:
        """Whether the name of the path says that it is a lock."""
        spelled = "" if self.access.path is None else self.access.path.text
        return says(f"{spelled} {self.access.path_source}", "lock")


class _Waiter(Record, frozen=True):
    """A function that calls the parameter `condition` repeatedly until the result is `truth`."""

    condition: m.Parameter
    truth: bool
    limit: WaitLimit


class Polling:
    """Finds the loops and calls of functions that poll for a path."""

    def __init__(self, accesses: Accesses) -> None:
        """Initialize for a project."""
        self.entry_states = accesses.entry_states
        self.flows = accesses.flows
        self.accesses = accesses
        self.limits = WaitLimits(self.entry_states)
        self.relevance = accesses.flows.relevance
        self._sleeps = self.flows.catalog.last_names["sleep"]

    def of(self, function: LinkedFunction) -> Iterator[Poll]:
        """Yield the polls of a function, in source order."""
        body = function.facts.body if function.facts.has_loop else ()
        sleeps = self.relevance.may_use(function, self._sleeps)
        loops = [loop for loop in loops_in(body) if _is_idle(loop) or (sleeps and self._may_sleep(loop))]
        handed = self._may_hand(function)
        if not loops and not handed:
            return
        call_sites = {call_site.call: call_site for call_site in self.flows.call_sites(function)}
        for loop in loops:
            if self._is_waiting(loop, call_sites):
                yield from self._of_loop(loop, call_sites)
        for call_site in call_sites.values() if handed else ():
            yield from self._of_call(call_site)

    def _may_sleep(self, loop: LoopStatement) -> bool:
        """Return whether a loop calls something with the name of a sleep function."""
        return any(last_name(call.function) in self._sleeps for call in calls_in(loop.body))

    def _may_hand(self, function: LinkedFunction) -> bool:
        """Return whether a function may call a function that sleeps, or a library function that polls."""
        if not function.facts.called:
            return False
        return function in self._handing or self.relevance.may_use(function, self._polling)

    @lazy
    def _handing(self) -> frozenset[LinkedFunction]:
        """The functions that may call a function that sleeps."""
        return self.relevance.filtered(self._find_handing, EVERYTHING)

    def _find_handing(self) -> frozenset[LinkedFunction]:
        sleeping = self.relevance.using(self._sleeps)
        callers = map(self.relevance.candidate_callers, sleeping)
        return frozenset(itertools.chain.from_iterable(callers))

    @lazy
    def _polling(self) -> frozenset[str]:
        """The last names of library functions that wait for a file."""
        catalog = self.flows.catalog
        polling = (name for name in catalog.names("effect") if catalog.exact("effect", name).op == "poll")
        return self.relevance.library_names(name.rpartition(".")[2] for name in polling)

    def _is_waiting(self, loop: LoopStatement, call_sites: dict[m.Call, CallSite]) -> bool:
        """Return whether a loop only waits: it sleeps or has an empty body, and changes nothing."""
        called = [call_sites[call] for call in calls_in(loop.body) if call in call_sites]
        operations = [
            self.accesses.effects.operation(call_site.call, call_site.state.scope) for call_site in called
        ]
        if any(operation is not None and operation.op not in ASKING for operation in operations):
            return False
        if isinstance(loop, m.For) and any(isinstance(inner, m.Try) for inner in all_in(loop.body)):
            return False
        return _is_idle(loop) or any(self.limits.is_sleep(call_site) for call_site in called)

    def _of_loop(self, loop: LoopStatement, call_sites: dict[m.Call, CallSite]) -> Iterator[Poll]:
        for call, truth in asked_by(loop):
            call_site = call_sites.get(call)
            operation = None if call_site is None else self._look(call, call_site.state.scope)
            if call_site is not None and operation is not None:
                limit = self.limits.of(loop, call_sites, call)
                poll = self._poll(call_site, operation, call_site.state.scope, truth=truth, limit=limit)
                looked, marker = self._looked_before(poll, call_sites.values()), self._marker(poll.access)
                yield replace(
                    poll,
                    looked=looked,
                    is_named=self._is_named(poll.access),
                    is_left=marker is not None and self._is_always_made(marker),
                    is_marker=marker is not None,
                )
                return

    def _is_named(self, access: Access) -> bool:
        function = access.call_site.function
        edges = self.accesses.entry_states.callers(function)
        paths = [self.accesses.substituted(access.path, edge.call_site, function) for edge in edges] or [
            access.path
        ]
        return any(path is not None and path.spells_its_last_part for path in paths)

    def _looked_before(self, poll: Poll, call_sites: Iterable[CallSite]) -> CallSite | None:
        """Return the call before a loop that checks the same path with the same function, or None."""
        access, called = poll.access, poll.access.call_site.call.function
        for call_site in call_sites:
            is_earlier = call_site.call.span < access.span and call_site.call.function == called
            if is_earlier and self._looks_for(access, call_site):
                return call_site
        return None

    def _look(self, call: m.Call, scope: Environment) -> Operation | None:
        operation = self.accesses.effects.operation(call, scope)
        return operation if operation is not None and operation.op in LOOKING else None

    def _poll(
        self, call_site: CallSite, operation: Operation, scope: Environment, *, truth: bool, limit: WaitLimit
    ) -> Poll:
        access = self.accesses.access_with_processes(call_site, replace(operation, op="poll"), scope)
        return Poll(access, truth, limit, self.accesses.is_settled_before(call_site))

    def _of_call(self, call_site: CallSite) -> Iterator[Poll]:
        """Yield the poll of a call that passes a path or a check to a waiting function, or waits itself."""
        callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
        operation = (
            self.accesses.effects.operation(call_site.call, call_site.state.scope) if callee is None else None
        )
        if operation is not None and operation.op == "poll":
            yield self._poll(
                call_site, operation, call_site.state.scope, truth=True, limit=WaitLimit(is_set=False)
            )
        if callee is not None and callee is not call_site.function:
            yield from self._at_call(call_site, callee)
        waiter = None if callee is None else self._waiter(callee)
        if waiter is None or callee is None:
            return
        value = bind(call_site.call, callee).argument_for(waiter.condition)
        for operation, scope in () if value is None else self._handed(value, call_site):
            limit = self.limits.passed(waiter.limit, call_site, callee)
            yield self._poll(call_site, operation, scope, truth=waiter.truth, limit=limit)
            return

    def _at_call(self, call_site: CallSite, callee: LinkedFunction) -> Iterator[Poll]:
        """Yield the polls of a callee for a path that a call passes to it."""
        for poll in self._polls_of_parameters(callee):
            seen = self.accesses.instantiate_at(call_site, callee, poll.access)
            if seen.path is not None:
                limit = self.limits.passed(poll.limit, call_site, callee)
                ordered, left = self.accesses.is_settled_before(call_site), self._is_left(seen)
                yield replace(poll, access=seen, at_call=True, limit=limit, is_ordered=ordered, is_left=left)

    def _is_left(self, access: Access) -> bool:
        """Return whether the function creates the path before it waits for it, and never deletes it."""
        path = access.path
        if path is None or not path.spells_its_last_part:
            return False
        others = [
            other for other in self.accesses.all_accesses(access.call_site.function) if other.path == path
        ]
        made = any(other.op in {"write", "create"} and access.comes_after(other) for other in others)
        return made and not any(other.op in {"delete", "rename"} for other in others)

    def _marker(self, access: Access) -> Access | None:
        """Return what creates the marker that a function waits for, in the function itself, or None."""
        others = self._at(access, access.call_site.function)
        made = [other for other in others if other.op in {"write", "create"}]
        return made[0] if made and all(map(self.accesses.is_marker, made)) else None

    def _is_always_made(self, marker: Access) -> bool:
        """Return whether a marker is created without a check for an old one, and is not deleted."""
        function = marker.call_site.function
        deleted = (other.op in {"delete", "rename"} for other in self._at(marker, function))
        looked = any(
            call_site.call.span < marker.span and self._looks_for(marker, call_site)
            for call_site in self.flows.call_sites(function)
        )
        checked = any(each.found_missing for each in self.accesses.tests.before(marker.call_site))
        return not (looked or checked or any(deleted))

    def _at(self, access: Access, function: LinkedFunction) -> list[Access]:
        """Return the accesses of a function itself to the path of another access."""
        return [each for each in self.accesses.direct(function) if each.path == access.path is not None]

    def _looks_for(self, access: Access, call_site: CallSite) -> bool:
        """Return whether a call checks for the path of an access."""
        operation = self._look(call_site.call, call_site.state.scope)
        if operation is None:
            return False
        return self.accesses.access_at(operation, call_site, call_site.state.scope).path == access.path

    @query
    def _polls_of_parameters(self, function: LinkedFunction) -> tuple[Poll, ...]:
        """Return the loops of a function that poll for a path that callers determine."""
        if not self.relevance.may_use(function, self._sleeps):
            return ()
        call_sites = {call_site.call: call_site for call_site in self.flows.call_sites(function)}
        loops = (loop for loop in loops_in(function.facts.body) if self._is_waiting(loop, call_sites))
        found = (poll for loop in loops for poll in self._of_loop(loop, call_sites))
        return tuple(poll for poll in found if self.accesses.is_parametric(poll.access))

    def _handed(self, value: m.Expr, call_site: CallSite) -> Iterator[tuple[Operation, Environment]]:
        """Yield the checks in a callable that is passed: a lambda, a function, or a method of a path."""
        scope = call_site.state.scope
        entity = self.flows.resolver.symbol(value, scope)
        if isinstance(value, m.Lambda):
            entity = call_site.function.module.functions[value.function]
        inner = [(m.Call(value, (), (), call_site.call.span), scope)]
        if isinstance(entity, LinkedFunction):
            # a lambda without parameters is called at once, in the environment of the call
            here = isinstance(value, m.Lambda) and not entity.facts.parameters
            inner = [
                (each.call, scope if here else each.state.scope) for each in self.flows.call_sites(entity)
            ]
        for call, names in inner:
            operation = self._look(call, names)
            if operation is not None:
                yield operation, names

    @query
    def _waiter(self, function: LinkedFunction) -> _Waiter | None:
        """Return how a function waits for a condition that it is passed, or None if it does not."""
        if not self.relevance.may_use(function, self._sleeps):
            return None
        call_sites = {call_site.call: call_site for call_site in self.flows.call_sites(function)}
        for loop in loops_in(function.facts.body):
            for call, truth in asked_by(loop) if self._is_waiting(loop, call_sites) else ():
                name = call.function.id if isinstance(call.function, m.Name) else ""
                if name in function.parameters:
                    return _Waiter(function.parameters[name], truth, self.limits.of(loop, call_sites, call))
        return None


def _is_idle(loop: LoopStatement) -> bool:
    return isinstance(loop, m.While) and all(isinstance(inner, m.Continue) for inner in loop.body)
