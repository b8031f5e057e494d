"""What the callers of a function bring with them: guards, handlers, locks, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name
from fsrace_lint.project.model import Evidence
from fsrace_lint.project.processes import ALL, FIRST, NOBODY, Processes, Runs, runs
from fsrace_lint.project.resolve import as_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.states import Event
    from fsrace_lint.project.values import Scope, Value

_COORDINATION: Final = ("launch", "barrier", "collective", "collective-saver")
_PASSED_ON: Final = frozenset(
    {"FileExistsError", "FileNotFoundError", "OSError", "IOError", "EnvironmentError"}
)
_HELPERS_DEPTH: Final = 3


@dataclass(frozen=True, slots=True)
class Context:
    """What holds whenever a function runs, whoever called it.

    `caught` names the exceptions that every caller handles, `locked` says that
    every caller holds a lock.
    """

    processes: Processes
    caught: frozenset[str]
    locked: bool


UNKNOWN_CALLERS: Final = Context(ALL, frozenset(), locked=False)


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A way into a function: a call of it, or a call that is handed it (`handed`).

    `only` is who the helper it is handed to lets run it, `position` the argument
    it is handed over in, None for a keyword.
    """

    event: Event
    handed: bool
    only: Processes = ALL
    position: int | None = None


class Propagation:
    """Joins what callers bring, over all call sites, to a fixpoint."""

    def __init__(self, linker: Linker) -> None:
        """Index who mentions what; nothing is followed yet."""
        self.linker = linker
        self.catalog = linker.catalog
        self._mentioning: dict[str, list[LinkedFunction]] = {}
        self._aliases: dict[str, set[str]] = {}
        self._edges: dict[LinkedFunction, tuple[Edge, ...]] = {}
        self._contexts: dict[LinkedFunction, Context] = {}
        self._evidence: dict[LinkedFunction, Evidence] = {}
        self._marked: dict[LinkedFunction, bool] = {}
        self._coordinates: dict[LinkedFunction, bool] = {}
        for module in linker.table.modules:
            for function in module.functions:
                for name in function.facts.mentions:
                    self._mentioning.setdefault(name, []).append(function)
            for row in module.facts.imports:
                if row.name is not None and row.local != row.name:
                    self._aliases.setdefault(row.name, set()).add(row.local)

    def aliases(self, name: str) -> set[str]:
        """Give the names under which imports of the project bind `name`."""
        return self._aliases.get(name, set())

    def edges(self, function: LinkedFunction) -> tuple[Edge, ...]:
        """Give every way into a function that could be resolved."""
        if function not in self._edges:
            self._edges[function] = ()
            self._edges[function] = tuple(self._find_edges(function))
        return self._edges[function]

    def context(self, function: LinkedFunction) -> Context:
        """Tell what holds whenever a function runs."""
        if function not in self._contexts:
            self._solve(self._upward(function, self.edges))
        return self._contexts[function]

    def evidence(self, function: LinkedFunction) -> Evidence:
        """Tell how sure it is that several processes run a function."""
        if function not in self._evidence:
            self._evidence[function] = self._find_evidence(function)
        return self._evidence[function]

    def ways_in(self, function: LinkedFunction) -> tuple[Edge, ...]:
        """Give the ways into a function that several processes take."""
        contended = []
        for edge in self.edges(function):
            processes = edge.event.state.processes & edge.only & self.context(edge.event.function).processes
            if runs(processes) is not Runs.ONE:
                contended.append(edge)
        return tuple(contended)

    def way_in(self, function: LinkedFunction) -> tuple[Event, ...]:
        """Give the calls by which several processes come to a function, nearest first, as short as can be."""
        chains: dict[LinkedFunction, tuple[Event, ...]] = {function: ()}
        waiting = [function]
        while waiting:
            current = waiting.pop(0)
            edges = self.ways_in(current)
            if not edges:
                return chains[current]
            for edge in edges:
                if edge.event.function not in chains:
                    chains[edge.event.function] = (*chains[current], edge.event)
                    waiting.append(edge.event.function)
        return ()

    def caught(self, event: Event) -> frozenset[str]:
        """Name the exceptions that are handled around a call, in its own function."""
        names: set[str] = set()
        for net in event.nets:
            for handler in net.handlers:
                if handler.caught is None:
                    types: tuple[m.Expr, ...] = (m.Name("BaseException"),)
                else:
                    types = (
                        handler.caught.items if isinstance(handler.caught, m.Sequence) else (handler.caught,)
                    )
                spelled = {_last(self.linker.resolver.qualify(type_, net.scope)) for type_ in types}
                if gives_up(handler):
                    spelled &= {"FileExistsError"}
                names |= spelled
            names |= {_last(self.linker.resolver.qualify(type_, net.scope)) for type_ in net.suppressed}
        return frozenset(names)

    def locked(self, event: Event) -> bool:
        """Tell whether a lock between processes is held around a call, in its own function."""
        return bool(event.state.locks) or any(self._is_lock(context) for context in event.contexts)

    def _is_lock(self, context: Value) -> bool:
        resolver = self.linker.resolver
        expr, scope = context.expr, context.scope
        entity = resolver.entity(expr.function if isinstance(expr, m.Call) else expr, scope)
        name = resolver.type_name(entity)
        if name is not None and (name.startswith(("threading.", "asyncio."))):
            return False
        entry = self.catalog.find("lock", name)
        if entry is not None:
            return bool(entry.kind == "context")
        spelled = last_name(expr)
        return "lock" in spelled.lower() and "block" not in spelled.lower()

    def _find_edges(self, function: LinkedFunction) -> Iterable[Edge]:
        names = {function.facts.name}
        if function.facts.name in {"__init__", "__new__", "__post_init__"} and function.owner is not None:
            names = {class_.facts.name for class_ in function.owner.descendants()} | {"super"}
        if function.facts.name == "__call__":
            return
        names |= {alias for name in tuple(names) for alias in self.aliases(name)}
        candidates = {caller: None for name in sorted(names) for caller in self._mentioning.get(name, ())}
        for caller in candidates:
            flow = self.linker.flow(caller)
            for event in flow.events if flow is not None else ():
                yield from self._edge(event, function)

    def _edge(self, event: Event, function: LinkedFunction) -> Iterable[Edge]:
        scope = event.state.scope
        if self._is_target(event.call.function, scope, function):
            yield Edge(event, handed=False)
        arguments = [
            *enumerate(event.call.arguments),
            *((None, keyword.value) for keyword in event.call.keywords),
        ]
        for position, value in arguments:
            if isinstance(value, (m.Name, m.Attribute, m.Lambda)) and self._is_target(value, scope, function):
                once = self.catalog.find("run-once", self.linker.resolver.qualify(event.call.function, scope))
                only = ALL if once is None else FIRST[once.scope]
                yield Edge(event, handed=True, only=only, position=position)

    def _is_target(self, expr: m.Expr, scope: Scope, function: LinkedFunction) -> bool:
        if isinstance(expr, m.Lambda):
            return scope.function.module.functions[expr.function] is function
        entity = self.linker.resolver.entity(expr, scope)
        target = as_function(entity)
        if target is function:
            return True
        if target is None or function.owner is None or target.owner is None:
            return False
        same = target.facts.name == function.facts.name
        return same and function.owner is not target.owner and target.owner in function.owner.ancestors()

    @staticmethod
    def _upward(
        function: LinkedFunction, ways: Callable[[LinkedFunction], tuple[Edge, ...]]
    ) -> list[LinkedFunction]:
        """Give a function and all its direct and indirect callers by some ways in."""
        seen = {function: None}
        waiting = [function]
        while waiting:
            for edge in ways(waiting.pop()):
                if edge.event.function not in seen:
                    seen[edge.event.function] = None
                    waiting.append(edge.event.function)
        return list(seen)

    def _solve(self, functions: list[LinkedFunction]) -> None:
        contexts: dict[LinkedFunction, Context] = {}
        open_ended = {function for function in functions if not self.edges(function)}
        while True:
            changed = True
            while changed:
                changed = False
                for function in functions:
                    context = self._join(function, contexts, open_ended)
                    if context is not None and contexts.get(function) != context:
                        contexts[function] = context
                        changed = True
            unreached = {function for function in functions if function not in contexts}
            if not unreached:
                break
            open_ended |= unreached
        self._contexts.update(contexts)

    def _join(
        self,
        function: LinkedFunction,
        contexts: dict[LinkedFunction, Context],
        open_ended: set[LinkedFunction],
    ) -> Context | None:
        own = self.decorated(function)
        if function in open_ended:
            return Context(own, frozenset(), locked=False)
        processes, caught, locked = NOBODY, None, True
        for edge in self.edges(function):
            outer = self._contexts.get(edge.event.function) or contexts.get(edge.event.function)
            if outer is None:
                continue
            processes |= edge.event.state.processes & edge.only & outer.processes
            handled = (
                (self.caught(edge.event) & _PASSED_ON) | outer.caught if not edge.handed else frozenset()
            )
            caught = handled if caught is None else caught & handled
            locked = locked and not edge.handed and (self.locked(edge.event) or outer.locked)
        return None if caught is None else Context(processes & own, caught, locked)

    def decorated(self, function: LinkedFunction) -> Processes:
        """Give the processes that the decorators of a function let through."""
        processes = ALL
        if function.facts.decorators and function.enclosing is not None:
            scope = self.linker.final_scope(function.enclosing)
            for decorator in function.facts.decorators if scope is not None else ():
                target = decorator.function if isinstance(decorator, m.Call) else decorator
                name = self.linker.resolver.qualify(target, scope) if scope is not None else None
                entry = self.catalog.find("decorator", name or "*." + last_name(target))
                if entry is not None:
                    processes &= FIRST[entry.scope]
        return processes

    def _find_evidence(self, function: LinkedFunction) -> Evidence:
        upward = self._upward(function, self.ways_in)
        if any(self._is_marked(caller) for caller in upward):
            return Evidence.EVIDENT
        roots = [caller for caller in upward if not self.ways_in(caller)]
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
        """Tell whether a function, or the class it belongs to, shows that several processes run it."""
        if function not in self._marked:
            mates = function.owner.methods.values() if function.owner is not None else (function,)
            marked = any(self._shows(mate) for mate in mates) or self._shows(function)
            self._marked[function] = marked or self._is_spawned(function)
        return self._marked[function]

    def _shows(self, function: LinkedFunction) -> bool:
        flow = self.linker.flow(function)
        if flow is None:
            return False
        if flow.tests_ranks or self._coordinating(function, 0):
            return True
        return any(
            self.linker.guards.rank_scope(event.call, event.state.scope) in {"global", "local", "group"}
            for event in flow.events
            if isinstance(event.call.function, (m.Name, m.Attribute))
        )

    def _coordinating(self, function: LinkedFunction, depth: int) -> bool:
        """Tell whether a function, or one it calls, launches or synchronizes processes."""
        if function in self._coordinates:
            return self._coordinates[function]
        flow = self.linker.flow(function)
        if flow is None or depth > _HELPERS_DEPTH:
            return False
        self._coordinates[function] = False
        resolver = self.linker.resolver
        found = False
        for event in flow.events:
            entity = resolver.entity(event.call.function, event.state.scope)
            name = resolver.type_name(entity)
            callee = as_function(entity)
            found = self.catalog.is_any(_COORDINATION, name) or (
                callee is not None and self._coordinating(callee, depth + 1)
            )
            if found:
                break
        self._coordinates[function] = found
        return found

    def _is_spawned(self, function: LinkedFunction) -> bool:
        resolver = self.linker.resolver
        return any(
            self.catalog.find("spawn", resolver.qualify(edge.event.call.function, edge.event.state.scope))
            is not None
            for edge in self.edges(function)
            if edge.handed
        )


def gives_up(handler: m.Handler) -> bool:
    """Tell whether a handler always raises again."""
    return any(isinstance(statement, m.Raise) for statement in handler.body)


def _last(name: str | None) -> str:
    return "" if name is None else name.rpartition(".")[2]
