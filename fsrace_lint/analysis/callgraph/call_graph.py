"""The ways into a function: who calls it, and who is handed it."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Final, TypeGuard

from msgspec.structs import replace

from fsrace_lint.analysis.callgraph.call_edges import CallEdge
from fsrace_lint.analysis.callgraph.parameter_values import CallerRankTests
from fsrace_lint.analysis.callgraph.summaries import Summaries
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, FIRST, TOP, ProcessSet
from fsrace_lint.analysis.program.symbols import as_function, is_property, package_of, qualified_name
from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.analysis.values.call_arguments import arguments_of, received
from fsrace_lint.engine.query_cache import once
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import is_super, last_name, setting_role
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.program.modules import LinkedClass, LinkedFunction, Module
    from fsrace_lint.analysis.program.symbols import Symbol
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog.entries import Spawn


_CALLING_NOTHING: Final = frozenset(
    {"super", "isinstance", "issubclass", "type", "hasattr", "getattr", "setattr", "id", "print", "repr"}
)

COST_OF_FOLLOWING: Final = 10
"""How many names and mentions are gone through in the time that it takes to follow a function."""


class _Use(Record, frozen=True, eq=False):
    """A call that runs a function, or is handed it in an argument.

    `exact` rules out what overrides it, `receiver` is the class of the object whose
    method it is. `order` is that of the code.
    """

    call_site: CallSite
    order: int = 0
    position: int | None = None
    keyword: str | None = None
    handed: bool = False
    exact: bool = False
    receiver: LinkedClass | None = None

    def may_run(self, method: LinkedFunction, owner: LinkedClass) -> bool:
        """Tell whether it may run the method of a class that overrides the one it names."""
        if self.exact:
            return False
        if method.facts.name == "__init__":
            called = self.call_site.call.function
            bound = self.call_site.state.scope.get(called.id) if isinstance(called, m.Name) else None
            return isinstance(bound, Argument)
        return self.receiver is None or self.receiver in owner.ancestors()


class _Open:
    """What a function calls and hands on, by the names that functions of the project may have there.

    Each is a call and the number of its argument, None for what is called itself; its name is None once
    it was resolved.
    """

    __slots__ = ("call_sites", "names", "numbers")

    def __init__(self, call_sites: Iterable[CallSite], denoting: Container[str]) -> None:
        """Take the calls of a function."""
        self.names: list[str | None] = []
        self.call_sites: list[CallSite] = []
        self.numbers: list[int | None] = []
        for call_site in call_sites:
            called = call_site.call.function
            self._add(call_site, None, called, denoting)
            if not (isinstance(called, m.Name) and called.id in _CALLING_NOTHING):
                for number, (_, _, value) in enumerate(arguments_of(call_site.call)):
                    self._add(call_site, number, value, denoting)

    def _add(self, call_site: CallSite, number: int | None, expr: m.Expr, denoting: Container[str]) -> None:
        name = m.LAMBDA if isinstance(expr, m.Lambda) else ""
        if isinstance(expr, (m.Name, m.Attribute)):
            name = last_name(expr)
            name = name if name in denoting else ""
        if name:
            self.names.append(name)
            self.call_sites.append(call_site)
            self.numbers.append(number)


class CallGraph:
    """Finds the ways into functions, each function's once."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Prepare for a project; nothing is looked at yet."""
        self.flows = flows
        self.catalog = flows.catalog
        self.rank_tests = CallerRankTests(flows, self)
        self.summaries = Summaries(flows, self.rank_tests)
        self.mentions = flows.mentions
        self._uses: dict[LinkedFunction, dict[LinkedFunction, list[_Use]]] = {}
        self._open: dict[LinkedFunction, _Open] = {}
        self._is_done = False
        """Whether all functions were looked at."""
        self._looked_at: dict[int, Collection[LinkedFunction]] = {}
        self._unresolved: dict[tuple[Module, str], list[CallEdge]] = {}
        self._edges: dict[LinkedFunction, tuple[CallEdge, ...]] = {}

    def callers(self, function: LinkedFunction) -> tuple[CallEdge, ...]:
        """Give every way into a function that could be resolved."""
        return once(self._edges, function, (), lambda: tuple(self._found(function)))

    def _found(self, function: LinkedFunction) -> Iterator[CallEdge]:
        return map(self._edge, self._uses_of(function, self._calls_of))

    def name_only_callers(self, function: LinkedFunction) -> tuple[CallEdge, ...]:
        """Give the calls in its file of a method that has its name, on objects that nothing is known of.

        They are looked at only where there is no other way in, and only for what
        speaks for a function: a guard, a lock or a handler that a reader sees there.
        """
        if function.owner is None or self.callers(function):
            return ()
        name, module = function.facts.name, function.module
        callers = (caller for caller in module.functions if caller.facts.use(name))
        self._look_at(callers, {name})
        found = self._unresolved.get((module, name), ())
        return tuple(sorted(found, key=lambda edge: edge.call_site.function.order))

    def search(self, function: LinkedFunction) -> Iterator[CallEdge]:
        """Give every way into a function as it is found, in no order: for those who need not see all."""
        if function in self._edges:
            yield from self._edges[function]
        else:
            yield from (self._edge(use) for use in self._uses_of(function, self._search_calls))

    def callers_lazily(self, function: LinkedFunction) -> Iterator[CallEdge]:
        """Give the same where all are asked for in the end, unless few files are asked about."""
        return self.search(function) if self.flows.asks_few else iter(self.callers(function))

    def callback_arguments(
        self, function: LinkedFunction, among: AbstractSet[str] | None = None
    ) -> Iterator[CallEdge]:
        """Give the ways into a function by calls that are handed it, as `search` does.

        Args:
            function: The function.
            among: Names, of which the code mentions one that those asked for stand in.

        Yields:
            The ways; others may be among them.
        """
        if function in self._edges:
            yield from (edge for edge in self._edges[function] if edge.passed_as_callback)
        else:
            search = functools.partial(self._search_calls, handed=True, among=among)
            yield from (self._edge(use) for use in self._uses_of(function, search) if use.handed)

    def spawning(self, function: LinkedFunction) -> Iterator[CallEdge]:
        """Give those of them that are calls that start processes."""
        found = self.callback_arguments(function, self._spawn_names)
        return (edge for edge in found if edge.spawn is not None)

    @functools.cached_property
    def _spawn_names(self) -> frozenset[str]:
        """The names by which what starts processes may be called in the project."""
        return self.mentions.names_of_library(self.catalog.last_names["spawn"])

    def _uses_of(
        self, function: LinkedFunction, calls_of: Callable[[LinkedFunction], Iterable[_Use]]
    ) -> Iterator[_Use]:
        """Give the uses of a function, and of the methods of base classes that it stands in for."""
        if function.facts.name == "__call__" or is_property(function) or setting_role(function.facts):
            return
        yield from calls_of(function)
        owner = function.owner
        for class_ in owner.ancestors() if owner is not None else ():
            inherited = class_.methods.get(function.facts.name)
            if owner is not None and inherited is not None and inherited is not function:
                yield from (use for use in calls_of(inherited) if use.may_run(function, owner))

    def _calls_of(self, function: LinkedFunction) -> Iterator[_Use]:
        """Give the uses of a function in the order of the project.

        Of many methods with one name, each has few callers among all those that mention the name.
        """
        if self._knows_all():
            callers: Collection[LinkedFunction] = self._uses.get(function, {})
        else:
            callers = self.mentions.of(function)
            if id(callers) not in self._looked_at:
                self._look_at(callers, self.mentions.names(function))
                self._look_at(self.mentions.naming_nobody(function), self.mentions.every)
                # They are held on to, so that their id is not given to others.
                self._looked_at[id(callers)] = callers
        uses = self._uses.get(function, {})
        for caller in sorted((each for each in uses if each in callers), key=lambda each: each.order):
            yield from sorted(uses[caller], key=lambda use: use.order)

    def _knows_all(self) -> bool:
        """Tell whether all functions were looked at, which is done once seeking by names has cost as much.

        It is not done while one is being followed: what leads back to that has no calls yet.
        """
        if self.flows.asks_few or self._is_done:
            return self._is_done
        if self.mentions.effort > COST_OF_FOLLOWING * self._count and not self.flows.cycles.depth:
            for module in self.flows.table.modules:
                self._look_at(module.functions, self.mentions.every)
            self._is_done = True
        return self._is_done

    @functools.cached_property
    def _count(self) -> int:
        """How many functions the project has; to count them reads the facts of all files."""
        return sum(len(module.functions) for module in self.flows.table.modules)

    def _search_calls(
        self, function: LinkedFunction, *, handed: bool = False, among: AbstractSet[str] | None = None
    ) -> Iterator[_Use]:
        """Give the uses of a function as they are found, those in code that mentions one of some names."""
        if self._knows_all():
            yield from itertools.chain.from_iterable(self._uses.get(function, {}).values())
            return
        told: dict[LinkedFunction, int] = {}
        for caller, names in self.mentions.search(function, handed=handed):
            if among is not None and among.isdisjoint(caller.facts.mentions):
                continue
            self._look_at((caller,), names)
            uses = self._uses.get(function, {}).get(caller, [])
            new, told[caller] = uses[told.get(caller, 0) :], len(uses)
            yield from new

    def _look_at(self, callers: Iterable[LinkedFunction], names: AbstractSet[str]) -> None:
        """Note what some functions call and hand on by some names, where that was not done yet."""
        for caller in callers:
            found = self._opened(caller)
            if names.isdisjoint(found.names):
                continue
            for order, name in enumerate(found.names):
                if name is not None and name in names:
                    self._note(found.call_sites[order], found.numbers[order], order)
                    found.names[order] = None

    def _opened(self, caller: LinkedFunction) -> _Open:
        if caller not in self._open:
            before = len(self._looked_at)
            self._open[caller] = _Open((), ())  # while it is being followed its calls are not known
            try:
                self._open[caller] = _Open(self.flows.call_sites(caller), self.mentions.denoting)
            except BaseException:
                del self._open[caller]
                raise
            finally:
                if len(self._looked_at) != before:  # somebody looked meanwhile, in vain
                    self._looked_at.clear()
        return self._open[caller]

    def _note(self, call_site: CallSite, number: int | None, order: int) -> None:
        """Note which function of the project a call runs, or is handed in an argument."""
        scope = call_site.state.scope
        expr, use = call_site.call.function, _Use(call_site, order)
        if number is not None:
            position, keyword, expr = next(itertools.islice(arguments_of(call_site.call), number, None))
            use = _Use(call_site, order, position, keyword, handed=True)
        resolver = self.flows.resolver
        entity = resolver.symbol(expr, scope)
        receiver = resolver.class_of(resolver.symbol(expr.value, scope)) if _is_method(expr, entity) else None
        if isinstance(expr, m.Attribute):
            use = replace(use, exact=is_super(expr.value), receiver=receiver)
        for target in tuple(_targets(expr, entity, receiver)):
            self._uses.setdefault(target, {}).setdefault(use.call_site.function, []).append(use)
        if entity is None and receiver is None and isinstance(expr, m.Attribute) and not use.handed:
            key = use.call_site.function.module, expr.name
            self._unresolved.setdefault(key, []).append(CallEdge(use.call_site, passed_as_callback=False))

    def _edge(self, use: _Use) -> CallEdge:
        if not use.handed:
            return CallEdge(use.call_site, passed_as_callback=False, receiver=use.receiver)
        found = self._handed(use.call_site, use.position, use.keyword)
        return replace(found, call_site=use.call_site, position=use.position)

    def _handed(self, call_site: CallSite, position: int | None, keyword: str | None) -> CallEdge:
        """Tell who runs a function that is handed over in an argument, and whether in new processes."""
        entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
        name = qualified_name(entity) or f"*.{last_name(call_site.call.function)}"
        once = self.catalog.find("run-once", name)
        callback = self.catalog.find("callback", name)
        spawn = self.catalog.find("spawn", name)
        first = self.catalog.find("first", name)
        helper = as_function(entity)
        edge = CallEdge(
            call_site, passed_as_callback=True, spawn=spawn, first=None if first is None else first.scope
        )
        if once is not None:
            return replace(edge, only=FIRST[once.scope], mutes=package_of(name) if once.mutes else "")
        if callback is not None:
            return CallEdge(
                call_site, passed_as_callback=True, only=self._who_calls(callback.runs_in, call_site.function)
            )
        if spawn is not None and spawn.curried:
            if self._runs_threads(spawn, call_site.function):
                return CallEdge(call_site, passed_as_callback=True)
            outer = (other.call for other in self.flows.call_sites(call_site.function))
            return replace(
                edge, passing=next((call for call in outer if call.function is call_site.call), None)
            )
        if spawn is not None or first is not None:
            return edge
        if helper is not None:
            parameter = received(helper, position, keyword)
            only = self.summaries.callback_processes(helper, parameter)
            return replace(edge, only=only, helper=helper, parameter=parameter)
        for other in self.flows.call_sites(call_site.function) if name == "functools.partial" else ():
            for index, value in enumerate(other.call.arguments):
                if self._is_result(value, other.state.scope, call_site.call):
                    return self._handed(other, index, None)
        return edge

    def _runs_threads(self, spawn: Spawn, function: LinkedFunction) -> bool:
        """Tell whether a function has what it hands over run in threads of one process."""
        for call_site in self.flows.call_sites(function) if spawn.runner else ():
            if self.flows.resolver.qualify(call_site.call.function, call_site.state.scope) == spawn.runner:
                values = ((each.name, each.value) for each in call_site.call.keywords)
                named = (f"{name}={v.value}" for name, v in values if isinstance(v, m.Constant))
                return not set(spawn.threads).isdisjoint(named)
        return False

    def _who_calls(self, method: str, function: LinkedFunction) -> ProcessSet:
        """Tell which processes call a method in a function; all where none does, and others may."""
        called = BOTTOM
        for call_site in self.flows.call_sites(function):
            if last_name(call_site.call.function) == method:
                called |= call_site.state.processes
        return called or TOP

    def _is_result(self, value: m.Expr, scope: Environment, call: m.Call) -> bool:
        """Tell whether an argument is the result of a call, itself or by name."""
        if isinstance(value, m.Name):
            bound = self.flows.resolver.binding(value.id, scope)
            return isinstance(bound, Expression) and bound.expr is call
        return value is call


def _is_method(expr: m.Expr, entity: Symbol | None) -> TypeGuard[m.Attribute]:
    """Tell whether an expression may be a method of an object of the project."""
    function = as_function(entity)
    owned = function is not None and function.owner is not None
    return isinstance(expr, m.Attribute) and (entity is None or owned)


def _targets(expr: m.Expr, entity: Symbol | None, receiver: LinkedClass | None) -> Iterator[LinkedFunction]:
    """Give the functions an expression may mean; what a class lacks, those that derive from it have."""
    function = as_function(entity)
    if function is not None:
        yield function
    elif entity is None and receiver is not None and isinstance(expr, m.Attribute):
        found = (class_.methods.get(expr.name) for class_ in receiver.descendants())
        yield from (method for method in found if method is not None)
