"""What the callers of a function bring with them: guards, handlers, locks, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name
from fsrace_lint.project.effects import given
from fsrace_lint.project.entities import as_function, qualified_name
from fsrace_lint.project.modules import LinkedFunction
from fsrace_lint.project.processes import ALL, FIRST, NOBODY, Processes, Runs, runs
from fsrace_lint.project.protection import Protection
from fsrace_lint.project.summarize import Summaries
from fsrace_lint.project.values import Argument, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.states import Event
    from fsrace_lint.project.values import Scope

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
        self.summaries = Summaries(linker)
        self.protection = Protection(linker, self.summaries)
        self._mentioning: dict[str, list[LinkedFunction]] = {}
        self._aliases: dict[str, set[str]] = {}
        self._edges: dict[LinkedFunction, tuple[Edge, ...]] = {}
        self._contexts: dict[LinkedFunction, Context] = {}
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
            self._solve(self.upward(function, self.edges))
        return self._contexts[function]

    def processes(self, event: Event) -> Processes:
        """Tell who reaches a call within its function, also by tests of what the callers pass.

        `if chosen:` on a parameter divides the processes as what is passed for it does.
        """
        processes = event.state.processes
        for literal in event.state.literals:
            test, truth = literal.test, literal.truth
            while isinstance(test, m.Not):
                test, truth = test.value, not truth
            binding = literal.scope.get(test.id) if isinstance(test, m.Name) else None
            if isinstance(binding, Argument) and binding.function is event.function:
                processes &= self._passed(binding, truth=truth)
        return processes

    def _passed(self, binding: Argument, *, truth: bool) -> Processes:
        """Tell who can be passed something true, or something false, for a parameter."""
        processes = NOBODY
        for edge in self.edges(binding.function):
            value = None if edge.handed else passed(edge.event.call, binding.parameter, binding.function)
            if value is None:
                return ALL
            processes |= self.linker.guards.split(value, edge.event.state.scope)[0 if truth else 1]
        return processes or ALL

    def ways_in(self, function: LinkedFunction) -> tuple[Edge, ...]:
        """Give the ways into a function that several processes take."""
        contended = []
        for edge in self.edges(function):
            processes = self.processes(edge.event) & edge.only & self.context(edge.event.function).processes
            if runs(processes) is not Runs.ONE:
                contended.append(edge)
        return tuple(contended)

    def _find_edges(self, function: LinkedFunction) -> Iterable[Edge]:
        names = {function.facts.name}
        if function.facts.name in {"__init__", "__new__", "__post_init__"} and function.owner is not None:
            names = {class_.facts.name for class_ in function.owner.descendants()} | {"super"}
        if function.facts.name == "__call__":
            return
        if function.facts.name == "<lambda>" and function.enclosing is not None:
            flow = self.linker.flow(function.enclosing)
            for event in flow.events if flow is not None else ():
                yield from self._edge(event, function)
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
                name = None if position is not None else _keyword_of(event.call, value)
                yield Edge(event, handed=True, only=self._only(event, position, name), position=position)

    def _only(self, event: Event, position: int | None, keyword: str | None) -> Processes:
        """Tell who runs a function that is handed over in an argument of a call."""
        entity = self.linker.resolver.entity(event.call.function, event.state.scope)
        once = self.catalog.find("run-once", qualified_name(entity))
        if once is not None:
            return FIRST[once.scope]
        helper = as_function(entity)
        if helper is not None:
            return self.summaries.runs_given(helper, received(helper, position, keyword))
        if qualified_name(entity) != "functools.partial":
            return ALL
        flow = self.linker.flow(event.function)
        for other in flow.events if flow is not None else ():
            for index, value in enumerate(other.call.arguments):
                if self._is_result(value, other.state.scope, event.call):
                    return self._only(other, index, None)
        return ALL

    def _is_result(self, value: m.Expr, scope: Scope, call: m.Call) -> bool:
        """Tell whether an argument is the result of a call, itself or by name."""
        if isinstance(value, m.Name):
            bound = self.linker.resolver.binding(value.id, scope)
            return isinstance(bound, Value) and bound.expr is call
        return value is call

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
    def upward(
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
            processes |= self.processes(edge.event) & edge.only & outer.processes
            here = self.protection.caught(edge.event) & _PASSED_ON
            handled = frozenset() if edge.handed else here | outer.caught
            caught = handled if caught is None else caught & handled
            locked = locked and not edge.handed and (self.protection.locked(edge.event) or outer.locked)
        return None if caught is None else Context(processes & own, caught, locked)

    def _hooked(self, function: LinkedFunction) -> Processes:
        """Give the processes on which a framework calls a method of a class derived from its own."""
        owner = function.owner
        if owner is None or len(owner.facts.bases) <= len(owner.bases):
            return ALL
        entry = self.catalog.find("hook", f"*.{function.facts.name}")
        return ALL if entry is None else FIRST.get(entry.runs, ALL)

    def decorated(self, function: LinkedFunction) -> Processes:
        """Give the processes that the decorators of a function let through."""
        processes = self._hooked(function)
        if function.facts.decorators and function.enclosing is not None:
            scope = self.linker.final_scope(function.enclosing)
            for decorator in function.facts.decorators if scope is not None else ():
                target = decorator.function if isinstance(decorator, m.Call) else decorator
                name = self.linker.resolver.qualify(target, scope) if scope is not None else None
                entry = self.catalog.find("decorator", name or "*." + last_name(target))
                if entry is not None:
                    processes &= FIRST[entry.scope]
                elif scope is not None:
                    helper = self.linker.resolver.entity(target, scope)
                    if isinstance(helper, LinkedFunction) and helper is not function:
                        processes &= self.summaries.runs_given(helper, None)
        return processes


def passed(call: m.Call, parameter: m.Parameter, function: LinkedFunction) -> m.Expr | None:
    """Find what a call passes for a parameter of the function it calls.

    Args:
        call: The call.
        parameter: The parameter.
        function: The function called; for a method the object is passed unseen.

    Returns:
        The expression, or None where the default is used.
    """
    names = [p.name for p in function.facts.parameters if p.kind == "positional"]
    position = ""
    if parameter.name in names:
        index = names.index(parameter.name) - (1 if function.takes_object else 0)
        position = str(index) if index >= 0 else ""
    return given(call, f"{position}:{parameter.name}")


def received(function: LinkedFunction, position: int | None, keyword: str | None) -> str | None:
    """Name the parameter that receives an argument of a call."""
    if position is None:
        return keyword
    names = [p.name for p in function.facts.parameters if p.kind == "positional"]
    index = position + (1 if function.takes_object else 0)
    return names[index] if index < len(names) else None


def _keyword_of(call: m.Call, value: m.Expr) -> str | None:
    return next((keyword.name for keyword in call.keywords if keyword.value is value), None)
