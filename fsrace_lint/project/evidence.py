"""How sure it is that several processes run a function, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name
from fsrace_lint.facts.spell import spell
from fsrace_lint.project.entities import as_function
from fsrace_lint.project.memo import Memo
from fsrace_lint.project.model import Evidence, Sign
from fsrace_lint.spans import Place

if TYPE_CHECKING:
    from fsrace_lint.project.edges import Edge
    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.modules import LinkedClass, LinkedFunction
    from fsrace_lint.project.propagate import Propagation
    from fsrace_lint.project.states import Event
    from fsrace_lint.spans import Span

_COORDINATION: Final = ("barrier", "collective", "collective-saver")
_HELPERS_DEPTH: Final = 3
_WRAPPERS_DEPTH: Final = 1
"""How deep a barrier may lie: helpers that also work in one process have theirs, and show nothing."""
_CLASSES_DEPTH: Final = 1
_ASKED: Final = frozenset({"global", "local", "group", "worker"})

_Step: TypeAlias = "tuple[LinkedFunction, LinkedClass | None]"
"""A function on the way, and the class of the object whose method it is there."""


@dataclass(frozen=True, slots=True)
class Trace:
    """How several processes come to a function: the calls, nearest first, and what shows it at their end."""

    evidence: Evidence
    way: tuple[Event, ...]
    sign: Sign | None


class Evidences:
    """Looks for signs of several processes in functions, their callers and the helpers they call."""

    def __init__(self, linker: Linker, propagation: Propagation) -> None:
        """Prepare for a project; nothing is followed yet."""
        self.linker = linker
        self.catalog = linker.catalog
        self.propagation = propagation
        self._traces: dict[LinkedFunction, Trace] = {}
        self._signs: dict[LinkedFunction, Sign | None] = {}
        self._coordinates: Memo[tuple[LinkedFunction, int], Event | None] = Memo(unknown=None)

    def trace(self, function: LinkedFunction) -> Trace:
        """Tell how sure it is that several processes run a function, and why."""
        if function not in self._traces:
            self._traces[function] = self._find_trace(function)
        return self._traces[function]

    def _find_trace(self, function: LinkedFunction) -> Trace:
        """Find the shortest way from a function with a sign, else from one that nobody calls.

        A method is followed to those calls alone that can be on an object of its class.
        """
        chains: dict[_Step, tuple[Event, ...]] = {(function, function.owner): ()}
        waiting: list[_Step] = [(function, function.owner)]
        roots: list[_Step] = []
        while waiting:
            step = waiting.pop(0)
            current, class_ = step
            near = len(chains[step]) <= _CLASSES_DEPTH
            sign = self._sign(current) or (self._sign_of_class(current) if near else None)
            if sign is not None:
                return Trace(Evidence.EVIDENT, chains[step], sign)
            edges = self.propagation.ways_in(current)
            if not edges:
                roots.append(step)
            for edge in edges:
                caller = _caller(edge, class_)
                if caller is not None and caller not in chains:
                    chains[caller] = (*chains[step], edge.event)
                    waiting.append(caller)
        way = chains[roots[0]] if roots else ()
        one_shot = bool(roots) and all(self._is_one_shot(root) for root, _ in roots)
        if one_shot and not any(self._may_launch(caller) for caller, _ in chains):
            return Trace(Evidence.NONE, way, None)
        return Trace(Evidence.PLAUSIBLE, way, None)

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

    def _may_launch(self, function: LinkedFunction) -> bool:
        """Tell whether a function calls what also runs on one device: a trainer, say."""
        return any(self._is_launch(event, certain=False) for event in self.linker.events(function))

    def _sign(self, function: LinkedFunction) -> Sign | None:
        """Find what shows that several processes run a function."""
        if function not in self._signs:
            ways = (self._shown, self._spawned, self._hooked, self._decorated)
            self._signs[function] = next(filter(None, (way(function) for way in ways)), None)
        return self._signs[function]

    def _sign_of_class(self, function: LinkedFunction) -> Sign | None:
        """Find what shows that several processes have objects of the class of a method.

        For a method that nobody calls, only tests of ranks and coordination count.
        """
        if function.owner is None:
            return None
        of = self._shown if self.propagation.ways_in(function) else self._ordered
        return next(filter(None, map(of, function.owner.methods.values())), None)

    def _shown(self, function: LinkedFunction) -> Sign | None:
        """Find where a function tests ranks, coordinates processes or as much as asks for a rank."""
        found = self._ordered(function)
        if found is not None:
            return found
        for event in self.linker.events(function):
            asks = isinstance(event.call.function, (m.Name, m.Attribute))
            if asks and self.linker.guards.rank_scope(event.call, event.state.scope) in _ASKED:
                return _sign(
                    function, event.call.span, f"{spell(event.call)} asks for the number of the process"
                )
        return None

    def _ordered(self, function: LinkedFunction) -> Sign | None:
        """Find where a function tests ranks or coordinates processes."""
        flow = self.linker.flow(function)
        if flow is None:
            return None
        if flow.rank_test is not None:
            return _sign(function, flow.rank_test, "a test here tells the processes apart")
        event = self._coordinating(function, 0)
        if event is None:
            return None
        called, leaf = spell(event.call.function), self._leaf(event, 0)
        what = f"{called} is for several processes" if leaf == called else f"{called} leads to {leaf}"
        return _sign(function, event.call.span, what)

    def _leaf(self, event: Event, depth: int) -> str:
        """Spell the call of the framework that a call leads to."""
        callee = self.linker.resolver.callee(event.call, event.state.scope)
        inner = None if callee is None else self._coordinating(callee, depth + 1)
        return spell(event.call.function) if inner is None else self._leaf(inner, depth + 1)

    def _coordinating(self, function: LinkedFunction, depth: int) -> Event | None:
        """Find the call by which a function launches or synchronizes processes, also in what it calls."""
        if depth > _HELPERS_DEPTH:
            return None
        return self._coordinates.get((function, depth), lambda: self._finds_coordination(function, depth))

    def _finds_coordination(self, function: LinkedFunction, depth: int) -> Event | None:
        resolver = self.linker.resolver
        for event in self.linker.events(function):
            entity = resolver.entity(event.call.function, event.state.scope)
            name = resolver.type_name(entity) or f"*.{last_name(event.call.function)}"
            meets = depth <= _WRAPPERS_DEPTH and self.catalog.is_any(_COORDINATION, name)
            if meets or self._is_launch(event, certain=True):
                return event
            callee = as_function(entity)
            if callee is not None and self._coordinating(callee, depth + 1) is not None:
                return event
        return None

    def _is_launch(self, event: Event, *, certain: bool) -> bool:
        entity = self.linker.resolver.entity(event.call.function, event.state.scope)
        entry = self.catalog.find("launch", self.linker.resolver.type_name(entity))
        return entry is not None and entry.certain is certain

    def _spawned(self, function: LinkedFunction) -> Sign | None:
        for edge in self.propagation.edges(function):
            if edge.starts_several:
                event = edge.event
                what = f"{spell(event.call.function)} starts the processes that run it"
                return _sign(event.function, event.call.span, what)
        return None

    def _hooked(self, function: LinkedFunction) -> Sign | None:
        hook = self.propagation.hooks.of(function)
        if hook is None or hook.runs not in {"every", "worker"}:
            return None
        who = "every process" if hook.runs == "every" else "every worker of every process"
        return _sign(function, function.facts.span, f"the framework calls {function.facts.name} in {who}")

    def _decorated(self, function: LinkedFunction) -> Sign | None:
        """Find a decorator that hands the function to several processes, or says where it is launched."""
        outer = function.enclosing
        scope = None if outer is None else self.linker.final_scope(outer)
        for decorator in function.facts.decorators if scope is not None else ():
            for expr in _calls_and_names(decorator):
                name = None if scope is None else self.linker.resolver.qualify(expr, scope)
                launch = self.catalog.find("launch", name)
                if self.catalog.find("spawn", name) is not None or (launch is not None and launch.certain):
                    return _sign(
                        function, function.facts.span, f"{spell(decorator)} runs it in several processes"
                    )
        return None


def _calls_and_names(decorator: m.Expr) -> tuple[m.Expr, ...]:
    """Give the decorator, without the call that makes it, and what is called in its arguments."""
    if not isinstance(decorator, m.Call):
        return (decorator,)
    values = (*decorator.arguments, *(keyword.value for keyword in decorator.keywords))
    return (decorator.function, *(value.function for value in values if isinstance(value, m.Call)))


def _caller(edge: Edge, class_: LinkedClass | None) -> _Step | None:
    """Give the caller of a method on an object of a class; None where the call is on another kind."""
    function, receiver = edge.event.function, edge.receiver
    if receiver is not None and class_ is not None and not edge.handed:
        if class_ not in receiver.ancestors() and receiver not in class_.ancestors():
            return None
        class_ = class_ if receiver in class_.ancestors() else receiver
    return function, class_ if edge.is_on_self and not edge.handed else function.owner


def _sign(function: LinkedFunction, span: Span, text: str) -> Sign:
    return Sign(Place(function.module.path, span), text)
