"""Whether the process group exists at a call, so that rank checks and barriers work there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.process_set import TOP
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import as_function
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.traversal import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.synchronization.before_init import BeforeInit
    from fsrace_lint.catalog.entries import IdiomEntry
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.program.symbols import Symbol

_HELPERS_DEPTH: Final = 2
_CALLERS_DEPTH: Final = 3
_NEEDING: Final = ("rank", "barrier", "collective")


class ProcessGroups:
    """Finds out whether a call certainly has a process group, and which code fails without one.

    In one process, many programs run without a group, and `dist.barrier()` would fail there.
    """

    def __init__(self, entry_states: EntryStates, before_init: BeforeInit) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.flows = entry_states.flows
        self.catalog = entry_states.catalog
        self.before_init = before_init

    def exists(self, call_site: CallSite, depth: int = 0) -> bool:
        """Return whether a call next to this one, outside of rank checks, certainly has a process group.

        The function, a constructor of its class, or all callers create or need it on the same conditions.
        """
        if self.before_init.is_too_early(call_site):
            return False
        own = [c for c in call_site.state.conditions if self.entry_states.deciding(c) == TOP]
        if any(map(self.before_init.holds_only_with_group, own)):
            return True
        call_sites = self.flows.call_sites(call_site.function)
        here = call_sites.index(call_site)
        if any(self._shows(each, own, is_after=index >= here) for index, each in enumerate(call_sites)):
            return True
        owner = call_site.function.owner
        create = None if owner is None else owner.methods.get("__init__")
        if create is not None and create is not call_site.function and self._is_created_in(create, 0):
            return True
        edges = self.entry_states.callers(call_site.function) if depth < _CALLERS_DEPTH else ()
        return bool(edges) and all(
            edge.spawn is None and not edge.passed_as_callback and self.exists(edge.call_site, depth + 1)
            for edge in edges
        )

    def is_used(self, call_site: CallSite) -> bool:
        """Return whether a process group can exist at a call."""
        return self.before_init.may_exist(call_site) or self.exists(call_site)

    def needing(self, expr: m.Expr, call_site: CallSite) -> tuple[m.Call, IdiomEntry] | None:
        """Return the first library call in an expression that fails without a process group, or None.

        The entry of the library models is that of its module.
        """
        for call in (part for part in within(expr) if isinstance(part, m.Call)):
            entry = self._grouped(self._name(call, call_site))
            if entry is not None:
                return call, entry
        return None

    def is_needed_inside(self, expr: m.Expr, call_site: CallSite) -> bool:
        """Return whether a function of the project that an expression calls needs a process group."""
        calls = (part for part in within(expr) if isinstance(part, m.Call))
        callees = (as_function(self._symbol(call, call_site)) for call in calls)
        return any(callee is not None and self.is_needed_in(callee) for callee in callees)

    @query
    def is_needed_in(self, function: LinkedFunction, depth: int = 0) -> bool:
        """Return whether a function always makes a call that fails without a process group."""
        return any(self._needs_at(each, depth) for each in self._always(function))

    def may_lack(self, call_site: CallSite) -> bool:
        """Return whether a call can also run in a program that creates no process group."""
        return self.before_init.may_exist(call_site) and not self.exists(call_site)

    def _shows(self, other: CallSite, own: Iterable[PathCondition], *, is_after: bool) -> bool:
        """Return whether a call next to another one shows that the group exists."""
        known = {(Identity(each.test), each.truth) for each in own}
        conditions = [
            each for each in other.state.conditions if (Identity(each.test), each.truth) not in known
        ]
        return self._shows_on(other, conditions, 0, is_after=is_after)

    def _shows_on(
        self, other: CallSite, conditions: Sequence[PathCondition], depth: int, *, is_after: bool
    ) -> bool:
        """Return whether a call on some conditions shows that the group exists before or after it."""
        if not conditions and self._needs_at(other, depth):
            return True
        creates = not is_after and self._creates(other, depth)
        return creates and all(map(self.before_init.asks_for_the_group, conditions))

    def _creates(self, call_site: CallSite, depth: int) -> bool:
        """Return whether a call always creates a process group."""
        entity = self._symbol(call_site.call, call_site)
        name = self.flows.resolver.type_name(entity)
        launch = self.catalog.find("launch", name)
        if launch is not None:
            # an object with rank checks of its own, such as an `Accelerator`, works without a group
            return bool(launch.creates_group) and self.catalog.find("idiom", name) is None
        callee = as_function(entity)
        return callee is not None and depth < _HELPERS_DEPTH and self._is_created_in(callee, depth + 1)

    @query
    def _is_created_in(self, function: LinkedFunction, depth: int) -> bool:
        return any(
            self._shows_on(each, each.state.conditions, depth, is_after=False)
            for each in self.flows.call_sites(function)
        )

    def _needs_at(self, call_site: CallSite, depth: int) -> bool:
        entity = self._symbol(call_site.call, call_site)
        callee = as_function(entity)
        if callee is not None:
            return depth < _HELPERS_DEPTH and self.is_needed_in(callee, depth + 1)
        return self._grouped(self._name(call_site.call, call_site)) is not None

    def _grouped(self, name: str | None) -> IdiomEntry | None:
        """Return the entry of the module of a library call that fails without a process group."""
        if name is None or not self.catalog.is_any(_NEEDING, name):
            return None
        entry = self.catalog.find("idiom", name.rpartition(".")[0])
        return entry if entry is not None and entry.needs_group else None

    def _always(self, function: LinkedFunction) -> Iterator[CallSite]:
        return (each for each in self.flows.call_sites(function) if not each.state.conditions)

    def _symbol(self, call: m.Call, call_site: CallSite) -> Symbol | None:
        return self.flows.resolver.symbol(call.function, call_site.state.scope)

    def _name(self, call: m.Call, call_site: CallSite) -> str | None:
        return self.flows.resolver.type_name(self._symbol(call, call_site))
