"""The ways into a function: who calls it, and who is handed it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fsrace_lint.facts import model as m
from fsrace_lint.facts.names import last_name
from fsrace_lint.project.arguments import received
from fsrace_lint.project.entities import as_function, qualified_name
from fsrace_lint.project.processes import ALL, FIRST, Processes
from fsrace_lint.project.resolve import is_super
from fsrace_lint.project.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fsrace_lint.catalog.entries import Spawn
    from fsrace_lint.project.linker import Linker
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.states import Event
    from fsrace_lint.project.summarize import Summaries
    from fsrace_lint.project.values import Scope


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A way into a function: a call of it, or a call that is handed it (`handed`).

    `only` is who the helper it is handed to lets run it, `position` the argument
    it is handed over in, None for a keyword; `spawn` says that it starts
    processes, which run it; `first` is the scope whose first process the helper
    lets run it before the others.
    """

    event: Event
    handed: bool
    only: Processes = ALL
    position: int | None = None
    spawn: Spawn | None = None
    first: str | None = None

    @property
    def starts_several(self) -> bool:
        """Whether it starts more than one process."""
        return self.spawn is not None and (self.event.repeated or not self.spawn.single)


class Edges:
    """Finds the ways into functions, each function's once."""

    def __init__(self, linker: Linker, summaries: Summaries) -> None:
        """Index who mentions what; nothing is followed yet."""
        self.linker = linker
        self.catalog = linker.catalog
        self.summaries = summaries
        self._mentioning: dict[str, list[LinkedFunction]] = {}
        self._aliases: dict[str, set[str]] = {}
        self._edges: dict[LinkedFunction, tuple[Edge, ...]] = {}
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

    def mentioning(self, names: Iterable[str]) -> tuple[LinkedFunction, ...]:
        """Give the functions that mention one of some names, or an alias of it."""
        every = {alias for name in names for alias in (name, *self.aliases(name))}
        return tuple({f: None for name in sorted(every) for f in self._mentioning.get(name, ())})

    def of(self, function: LinkedFunction) -> tuple[Edge, ...]:
        """Give every way into a function that could be resolved."""
        if function not in self._edges:
            self._edges[function] = ()
            self._edges[function] = tuple(self._find(function))
        return self._edges[function]

    def _find(self, function: LinkedFunction) -> Iterable[Edge]:
        names = {function.facts.name}
        if function.facts.name in {"__init__", "__new__", "__post_init__"} and function.owner is not None:
            names = {class_.facts.name for class_ in function.owner.descendants()} | {"super"}
        if function.facts.name == "__call__":
            return
        callers = self.mentioning(names)
        if function.facts.name == "<lambda>" and function.enclosing is not None:
            callers = (function.enclosing,)
        for caller in callers:
            for event in self.linker.events(caller):
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
                yield replace(self._handed(event, position, name), event=event, position=position)

    def _handed(self, event: Event, position: int | None, keyword: str | None) -> Edge:
        """Tell who runs a function that is handed over in an argument, and whether in new processes."""
        entity = self.linker.resolver.entity(event.call.function, event.state.scope)
        name = qualified_name(entity) or f"*.{last_name(event.call.function)}"
        once = self.catalog.find("run-once", name)
        spawn = self.catalog.find("spawn", name)
        first = self.catalog.find("first", name)
        helper = as_function(entity)
        edge = Edge(event, handed=True, spawn=spawn, first=None if first is None else first.scope)
        if once is not None:
            return replace(edge, only=FIRST[once.scope])
        if spawn is not None or first is not None:
            return edge
        if helper is not None:
            return replace(edge, only=self.summaries.runs_given(helper, received(helper, position, keyword)))
        for other in self.linker.events(event.function) if name == "functools.partial" else ():
            for index, value in enumerate(other.call.arguments):
                if self._is_result(value, other.state.scope, event.call):
                    return self._handed(other, index, None)
        return edge

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
        if isinstance(expr, m.Attribute) and is_super(expr.value):
            return False
        same = target.facts.name == function.facts.name
        return same and function.owner is not target.owner and target.owner in function.owner.ancestors()


def _keyword_of(call: m.Call, value: m.Expr) -> str | None:
    return next((keyword.name for keyword in call.keywords if keyword.value is value), None)
