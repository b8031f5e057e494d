"""How sure it is that several processes run a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.project.entities import as_function
from fsrace_lint.project.memo import Memo
from fsrace_lint.project.model import Evidence

if TYPE_CHECKING:
    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.propagate import Propagation
    from fsrace_lint.project.states import Event

_COORDINATION: Final = ("launch", "barrier", "collective", "collective-saver")
_HELPERS_DEPTH: Final = 3


class Evidences:
    """Looks for signs of several processes in functions, their callers and the helpers they call."""

    def __init__(self, linker: Linker, propagation: Propagation) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.linker = linker
        self.catalog = linker.catalog
        self.propagation = propagation
        self._evidence: dict[LinkedFunction, Evidence] = {}
        self._marked: dict[LinkedFunction, bool] = {}
        self._coordinates: Memo[tuple[LinkedFunction, int], bool] = Memo(unknown=False)

    def evidence(self, function: LinkedFunction) -> Evidence:
        """Tell how sure it is that several processes run a function."""
        if function not in self._evidence:
            self._evidence[function] = self._find_evidence(function)
        return self._evidence[function]

    def _find_evidence(self, function: LinkedFunction) -> Evidence:
        upward = self.propagation.upward(function, self.propagation.ways_in)
        if any(self._is_marked(caller) for caller in upward):
            return Evidence.EVIDENT
        roots = [caller for caller in upward if not self.propagation.ways_in(caller)]
        if roots and all(self._is_one_shot(root) for root in roots):
            return Evidence.NONE
        return Evidence.PLAUSIBLE

    def _is_one_shot(self, root: LinkedFunction) -> bool:
        """Tell whether a function that nobody calls belongs to a script that is run once, by hand.

        In a package that is the main part of a script that no other file imports.
        """
        if not root.module.facts.is_script:
            return False
        if not self._is_packaged(root):
            return True
        return root.index == 0 and root.module not in self.linker.resolver.imported_modules()

    def _is_packaged(self, function: LinkedFunction) -> bool:
        """Tell whether a file belongs to a package, so that more than its own main part may use it."""
        package = function.module.name.rpartition(".")[0]
        return bool(package) and self.linker.table.exact(package) is not None

    def _is_marked(self, function: LinkedFunction) -> bool:
        """Tell whether a function shows several processes, or its class does.

        For a method that nobody calls, only tests of ranks and coordination in its class count.
        """
        if function not in self._marked:
            marked = self._shows(function) or self._is_spawned(function)
            if not marked and function.owner is not None:
                sign = self._shows if self.propagation.ways_in(function) else self._orders
                marked = any(sign(mate) for mate in function.owner.methods.values())
            self._marked[function] = marked
        return self._marked[function]

    def way_in(self, function: LinkedFunction) -> tuple[Event, ...]:
        """Give the calls by which several processes come to a function, nearest first.

        The shortest way from a function that shows several processes, else from
        one that nobody calls.
        """
        chains: dict[LinkedFunction, tuple[Event, ...]] = {function: ()}
        waiting = [function]
        uncalled: tuple[Event, ...] | None = None
        while waiting:
            current = waiting.pop(0)
            if chains[current] and self._is_marked(current):
                return chains[current]
            edges = self.propagation.ways_in(current)
            if not edges and uncalled is None:
                uncalled = chains[current]
            for edge in edges:
                if edge.event.function not in chains:
                    chains[edge.event.function] = (*chains[current], edge.event)
                    waiting.append(edge.event.function)
        return uncalled or ()

    def _shows(self, function: LinkedFunction) -> bool:
        """Tell whether a function tests ranks, coordinates processes or as much as asks for a rank."""
        if self._orders(function):
            return True
        flow = self.linker.flow(function)
        return any(
            self.linker.guards.rank_scope(event.call, event.state.scope) in {"global", "local", "group"}
            for event in (flow.events if flow is not None else ())
            if isinstance(event.call.function, (m.Name, m.Attribute))
        )

    def _orders(self, function: LinkedFunction) -> bool:
        """Tell whether a function tests ranks or coordinates processes."""
        flow = self.linker.flow(function)
        return flow is not None and (flow.tests_ranks or self._coordinating(function, 0))

    def _coordinating(self, function: LinkedFunction, depth: int) -> bool:
        """Tell whether a function, or one it calls, launches or synchronizes processes."""
        if depth > _HELPERS_DEPTH:
            return False
        return self._coordinates.get((function, depth), lambda: self._finds_coordination(function, depth))

    def _finds_coordination(self, function: LinkedFunction, depth: int) -> bool:
        resolver = self.linker.resolver
        flow = self.linker.flow(function)
        for event in flow.events if flow is not None else ():
            entity = resolver.entity(event.call.function, event.state.scope)
            if self.catalog.is_any(_COORDINATION, resolver.type_name(entity)):
                return True
            callee = as_function(entity)
            if callee is not None and self._coordinating(callee, depth + 1):
                return True
        return False

    def _is_spawned(self, function: LinkedFunction) -> bool:
        resolver = self.linker.resolver
        return any(
            self.catalog.find("spawn", resolver.qualify(edge.event.call.function, edge.event.state.scope))
            is not None
            for edge in self.propagation.edges(function)
            if edge.handed
        )
