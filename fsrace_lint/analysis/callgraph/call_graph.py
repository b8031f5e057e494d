"""The call graph: the call edges into each function."""

from __future__ import annotations

import functools
import itertools
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from msgspec.structs import replace

from fsrace_lint.analysis.callgraph.call_edges import CallEdge
from fsrace_lint.analysis.callgraph.parameter_values import CallerRankTests
from fsrace_lint.analysis.callgraph.summaries import Summaries
from fsrace_lint.analysis.dataflow.process_set import BOTTOM, FIRST, MAIN, TOP, ProcessSet
from fsrace_lint.analysis.values.abstract_values import Argument, Expression
from fsrace_lint.analysis.values.call_arguments import arguments_of, bind, holds
from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.modules import LinkedClass
from fsrace_lint.program.symbols import as_function, is_property, package_of, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import is_super, last_name, setting_role
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog.entries import Remote, Spawn
    from fsrace_lint.engine.query import Table
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.program.symbols import Symbol


_CALLING_NOTHING: Final = frozenset(
    {"super", "isinstance", "issubclass", "type", "hasattr", "getattr", "setattr", "id", "print", "repr"}
)


_ARGUMENTS: Final = 32
"""The number of bits that hold the number of the argument in a packed use."""


class _Use(Record, frozen=True, eq=False):
    """A call that runs a function, or passes it in an argument.

    Attributes:
        call_site: The call.
        order: The sort key of the use within its function.
        position: The position of the argument with the function.
        keyword: The keyword of the argument with the function.
        handed: Whether the function is passed in an argument.
        exact: Whether the call excludes overrides, as `super().save()` and `Base.save(self)` do.
        made: Whether the call is on an object that the function makes, so that its class is exact.
        receiver: The class of the object whose method is called.
        remote: The catalog entry, if the call runs the function in another process: `task.remote()`.
    """

    call_site: CallSite
    order: int = 0
    position: int | None = None
    keyword: str | None = None
    handed: bool = False
    exact: bool = False
    made: bool = False
    receiver: LinkedClass | None = None
    remote: Remote | None = None

    def may_run_overrides(self, method: LinkedFunction) -> bool:
        """Return whether the call may run methods of subclasses of `receiver` that override the named one."""
        if self.exact or method.facts.name != "__init__":
            return not self.exact
        called = self.call_site.call.function
        bound = self.call_site.state.scope.get(called.id) if isinstance(called, m.Name) else None
        return isinstance(bound, Argument)


class _ResolvedUse(NamedTuple):
    """A use of a name, and the functions that it can refer to."""

    use: _Use
    targets: tuple[LinkedFunction, ...]
    is_unknown: bool
    """Whether the object whose method is called is unknown."""


class CallGraph:
    """Finds the call edges into functions, once per function."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows = flows
        self.catalog = flows.catalog
        self.rank_tests = CallerRankTests(flows, self)
        self.summaries = Summaries(flows, self.rank_tests)
        self.relevance = flows.relevance

    @query(provisional=())
    def callers(self, function: LinkedFunction) -> tuple[CallEdge, ...]:
        """Return all resolved call edges into a function."""
        return tuple(map(self._edge, self._uses_of(function)))

    def name_only_callers(self, function: LinkedFunction) -> tuple[CallEdge, ...]:
        """Return the calls, in the same file, of methods with the same name on unknown objects.

        They are used only if a method has no other callers, and only as evidence of protection by a rank
        check, a lock, or a handler.
        """
        if function.owner is None or self.callers(function):
            return ()
        name, module = function.facts.name, function.module
        callers = (caller for caller in module.functions if caller.facts.use(name))
        found = (each for caller in callers for each in self._resolved(caller, name))
        return tuple(
            CallEdge(each.use.call_site, passed_as_callback=False) for each in found if each.is_unknown
        )

    def search(self, function: LinkedFunction) -> Iterator[CallEdge]:
        """Yield the call edges into a function as they are found, unordered."""
        known = self._known_callers.known(function)
        if known is not None:
            return iter(known)
        return (self._edge(use) for use in self._uses_of(function, self._search_calls))

    @lazy
    def _known_callers(self) -> Table[[LinkedFunction], tuple[CallEdge, ...]]:
        """The call edges that are already computed."""
        return CallGraph.callers.table(self)

    def callers_lazily(self, function: LinkedFunction) -> Iterator[CallEdge]:
        """Yield all call edges into a function, through `search` if only a few files are queried."""
        return self.relevance.filtered(lambda: iter(self.callers(function)), self.search(function))

    def callback_arguments(
        self, function: LinkedFunction, among: AbstractSet[str] | None = None
    ) -> Iterator[CallEdge]:
        """Yield the call edges into a function by calls to which it is passed, as `search` does.

        Args:
            function: The function.
            among: If given, skip callers that use none of these names.
        """
        known = self._known_callers.known(function)
        if known is not None:
            return (edge for edge in known if edge.passed_as_callback)
        search = functools.partial(self._search_calls, handed=True, among=among)
        return (self._edge(use) for use in self._uses_of(function, search) if use.handed)

    def spawning(self, function: LinkedFunction) -> Iterator[CallEdge]:
        """Yield the call edges into a function by calls that start processes."""
        found = self.callback_arguments(function, self._spawn_names)
        return (edge for edge in found if edge.spawn is not None)

    @lazy
    def _spawn_names(self) -> frozenset[str]:
        """The names that calls that start processes can have in the project."""
        return self.relevance.library_names(self.catalog.last_names["spawn"])

    def _uses_of(
        self, function: LinkedFunction, search: Callable[[LinkedFunction], Iterable[_Use]] | None = None
    ) -> Iterator[_Use]:
        """Yield the uses of a function, and of the methods of base classes that it overrides.

        Args:
            function: The function.
            search: Yields the uses of a function as they are found; None for all in project order.
        """
        if function.facts.name == "__call__" or is_property(function) or setting_role(function.facts):
            return
        yield from self._calls_of(function) if search is None else search(function)
        yield from self._remote_uses(function)
        lineage = function.owner.ancestors() if function.owner is not None else ()
        for class_ in lineage:
            inherited = class_.methods.get(function.facts.name)
            if inherited is None or inherited is function:
                continue
            if search is not None:
                uses = (use for use in search(inherited) if use.may_run_overrides(inherited))
                yield from (use for use in uses if _receiver(use, inherited) in {None, *lineage})
            elif overridable := self._overridable_uses(inherited):
                found = (use for receiver in (None, *lineage) for use in overridable.get(receiver, ()))
                yield from sorted(found, key=_place)

    @query
    def _overridable_uses(self, method: LinkedFunction) -> dict[LinkedClass | None, list[_Use]]:
        """Return the uses of a method that may run overrides, by the class that must be their ancestor."""
        found: dict[LinkedClass | None, list[_Use]] = {}
        for use in self._calls_of(method):
            if use.may_run_overrides(method):
                found.setdefault(_receiver(use, method), []).append(use)
        return found

    @query
    def _remote_uses(self, function: LinkedFunction) -> tuple[_Use, ...]:
        """Return the calls that run a decorated function, or create an object of its class, elsewhere."""
        owner = function.owner if function.facts.name == "__init__" else None
        facts = function.facts if owner is None else owner.facts
        callers = self._calling_elsewhere if facts.decorators else ()
        return tuple(
            _Use(call_site, order << _ARGUMENTS, remote=entry)
            for caller in callers
            if self.relevance.may_use(caller, {facts.name})
            for order, call_site in enumerate(self.flows.call_sites(caller))
            if (entry := self._remote(call_site, function)) is not None
        )

    @lazy
    def _calling_elsewhere(self) -> list[LinkedFunction]:
        """The functions that may run a function in another process, as `task.remote()` does."""
        return self.relevance.using(self.catalog.last_names["remote"])

    def _remote(self, call_site: CallSite, function: LinkedFunction) -> Remote | None:
        """Return the catalog entry of a call that runs a function elsewhere, as `task.remote()` does."""
        called = call_site.call.function
        entry: Remote | None = self.catalog.find("remote", f"*.{last_name(called)}")
        run = called.value if isinstance(called, m.Attribute) else called
        if isinstance(run, m.Call) and isinstance(run.function, m.Attribute):
            run = run.function.value
        if entry is None or not isinstance(run, (m.Name, m.Attribute)):
            return None
        is_meant = as_function(self.flows.resolver.symbol(run, call_site.state.scope)) is function
        return entry if is_meant else None

    def _calls_of(self, function: LinkedFunction) -> Iterator[_Use]:
        """Return the uses of a function in project order."""
        if self.relevance.is_worth_reading_all:
            return iter(self._all_uses.get(function, ()))
        callers, names = self.relevance.naming(function)
        found = dict.fromkeys(self._uses_among(Identity(callers), names).get(function, ()))
        for caller in self.relevance.naming_nobody(function):
            found.update(dict.fromkeys(self._uses_by(caller).get(function, ())))
        return iter(sorted(found, key=_place))

    @query
    def _uses_by(self, caller: LinkedFunction) -> dict[LinkedFunction, list[_Use]]:
        """Return all uses in a function, by the functions that they refer to."""
        return self._by_target((caller,), self.relevance.every)

    @query
    def _uses_among(
        self, callers: Identity[Collection[LinkedFunction]], names: frozenset[str]
    ) -> dict[LinkedFunction, list[_Use]]:
        """Return the uses of names in some functions, by the functions that they refer to.

        The result is shared by all methods with the same candidates and names.
        """
        return self._by_target(callers.of, names)

    @lazy
    def _all_uses(self) -> dict[LinkedFunction, list[_Use]]:
        """The uses in all functions, by the functions that they refer to."""
        functions = (function for module in self.flows.table.modules for function in module.functions)
        return self._by_target(functions, self.relevance.every)

    def _by_target(
        self, callers: Iterable[LinkedFunction], names: AbstractSet[str]
    ) -> dict[LinkedFunction, list[_Use]]:
        found: dict[LinkedFunction, list[_Use]] = {}
        for caller in callers:
            for each in sorted(self._uses_in(caller, names), key=lambda each: each.use.order):
                for target in each.targets:
                    found.setdefault(target, []).append(each.use)
        return found

    def _search_calls(
        self, function: LinkedFunction, *, handed: bool = False, among: AbstractSet[str] | None = None
    ) -> Iterator[_Use]:
        """Yield the uses of a function as they are found; if `among`, only in code that uses such a name."""
        if self.relevance.is_worth_reading_all:
            yield from self._all_uses.get(function, ())
            return
        told: set[_Use] = set()
        for uses in self._found_uses(function, handed=handed, among=among):
            for use in uses:
                if use not in told:
                    told.add(use)
                    yield use

    def _found_uses(
        self, function: LinkedFunction, *, handed: bool, among: AbstractSet[str] | None
    ) -> Iterator[Iterable[_Use]]:
        """Yield the uses of a function by caller, with repetitions; see `_search_calls`."""
        for caller in self.relevance.naming_nobody(function):
            if among is None or self.relevance.may_use(caller, among):
                yield self._uses_by(caller).get(function, ())
        for caller, name in self.relevance.search(function, handed=handed):
            is_sought = among is None or self.relevance.may_use(caller, among)
            if is_sought and name in self._named_uses(caller):
                yield [each.use for each in self._resolved(caller, name) if function in each.targets]

    def _uses_in(self, caller: LinkedFunction, names: AbstractSet[str]) -> Iterator[_ResolvedUse]:
        """Yield the uses of some names in a function."""
        for name in self._named_uses(caller):
            if name in names:
                yield from self._resolved(caller, name)

    @query
    def _named_uses(self, caller: LinkedFunction) -> dict[str, array[int]]:
        """Return the packed uses in a function, by the names that functions of the project can have.

        A packed use holds the position of a call, and the number of its argument, or 0 for the call itself.
        """
        found: dict[str, array[int]] = {}
        for position, call_site in enumerate(self.flows.call_sites(caller)):
            called = call_site.call.function
            told = isinstance(called, m.Name) and called.id in _CALLING_NOTHING
            handed = () if told else (value for _, _, value in arguments_of(call_site.call))
            for number, expr in enumerate(itertools.chain([called], handed)):
                name = self._name_of(expr)
                if name:
                    found.setdefault(name, array("Q")).append(position << _ARGUMENTS | number)
        return found

    def _name_of(self, expr: m.Expr) -> str:
        """Return the name of a possible reference to a function of the project, or an empty string."""
        if isinstance(expr, m.Lambda):
            return m.LAMBDA
        name = last_name(expr) if isinstance(expr, (m.Name, m.Attribute)) else ""
        return name if name in self.relevance.denoting else ""

    @query
    def _resolved(self, caller: LinkedFunction, name: str) -> tuple[_ResolvedUse, ...]:
        """Return the uses of a name in a function, with the functions that they refer to."""
        call_sites = self.flows.call_sites(caller)
        places = self._named_uses(caller).get(name, ())
        return tuple(self._resolve(call_sites[place >> _ARGUMENTS], place) for place in places)

    def _resolve(self, call_site: CallSite, place: int) -> _ResolvedUse:
        """Return the use for a packed use, with the functions that it refers to."""
        scope, number = call_site.state.scope, place & ((1 << _ARGUMENTS) - 1)
        expr, use = call_site.call.function, _Use(call_site, place)
        if number:
            position, keyword, expr = next(itertools.islice(arguments_of(call_site.call), number - 1, None))
            use = _Use(call_site, place, position, keyword, handed=True)
        resolver = self.flows.resolver
        entity = resolver.symbol(expr, scope)
        on = resolver.symbol(expr.value, scope) if _is_method(expr, entity) else None
        receiver = resolver.class_of(on)
        is_named = isinstance(expr, m.Attribute) and _is_named(expr.value, on)
        if isinstance(expr, m.Attribute):
            made = self._is_made(expr.value, scope)
            exact = made or is_super(expr.value) or is_named
            use = replace(use, exact=exact, made=made, receiver=receiver)
        is_unknown = entity is None and receiver is None and isinstance(expr, m.Attribute) and not use.handed
        return _ResolvedUse(use, tuple(_targets(expr, entity, None if is_named else receiver)), is_unknown)

    def _is_made(self, expr: m.Expr, scope: Environment) -> bool:
        """Return whether an object is the result of `Class()`, directly or by name.

        The class must have its own name there. A variable can hold a subclass.
        """
        bound = scope.get(expr.id) if isinstance(expr, m.Name) else None
        made = bound if isinstance(bound, Expression) else Expression(expr, scope)
        if not isinstance(made.expr, m.Call):
            return False
        class_ = self.flows.resolver.symbol(made.expr.function, made.scope)
        return isinstance(class_, LinkedClass) and class_.facts.name == last_name(made.expr.function)

    @query
    def _edge(self, use: _Use) -> CallEdge:
        if not use.handed:
            edge = CallEdge(
                use.call_site,
                passed_as_callback=False,
                receiver=use.receiver,
                spawn=use.remote,
                is_exact=use.made,
            )
            is_one = use.remote is not None and _uses_one(use.remote, use.call_site.call)
            return replace(edge, only=MAIN, spawn=None) if is_one else edge
        found = self._handed(use.call_site, use.position, use.keyword)
        return replace(found, call_site=use.call_site, position=use.position)

    def _handed(self, call_site: CallSite, position: int | None, keyword: str | None) -> CallEdge:
        """Return the edge for a callback: which processes run it, and whether the call starts them."""
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
            parameter = bind(call_site.call, helper).parameter_for(position, keyword)
            only = self.summaries.callback_processes(helper, parameter)
            return replace(edge, only=only, helper=helper, parameter=parameter)
        for other in self.flows.call_sites(call_site.function) if name == "functools.partial" else ():
            for index, value in enumerate(other.call.arguments):
                if self._is_result(value, other.state.scope, call_site.call):
                    return self._handed(other, index, None)
        return edge

    def _runs_threads(self, spawn: Spawn, function: LinkedFunction) -> bool:
        """Return whether a function runs its callbacks in threads instead of processes."""
        for call_site in self.flows.call_sites(function) if spawn.runner else ():
            if self.flows.resolver.qualify(call_site.call.function, call_site.state.scope) == spawn.runner:
                values = ((each.name, each.value) for each in call_site.call.keywords)
                named = (f"{name}={v.value}" for name, v in values if isinstance(v, m.Constant))
                return not set(spawn.threads).isdisjoint(named)
        return False

    def _who_calls(self, method: str, function: LinkedFunction) -> ProcessSet:
        """Return the processes that call a method in a function, or else in its file; all if none does."""
        others = (each for each in function.module.functions if each.facts.use(method))
        called = self._calling(method, [function]) or self._calling(method, others)
        return called or TOP

    def _calling(self, method: str, functions: Iterable[LinkedFunction]) -> ProcessSet:
        called = BOTTOM
        for call_site in itertools.chain.from_iterable(map(self.flows.call_sites, functions)):
            if last_name(call_site.call.function) == method:
                called |= call_site.state.processes
        return called

    def _is_result(self, value: m.Expr, scope: Environment, call: m.Call) -> bool:
        """Return whether an argument is the result of a call, directly or by name."""
        if isinstance(value, m.Name):
            bound = self.flows.resolver.binding(value.id, scope)
            return isinstance(bound, Expression) and bound.expr is call
        return value is call


def _receiver(use: _Use, method: LinkedFunction) -> LinkedClass | None:
    """Return the class whose subclasses' overrides a use of a method may run, or None for all subclasses."""
    return None if method.facts.name == "__init__" else use.receiver


def _place(use: _Use) -> tuple[tuple[int, int], int]:
    """Return the sort key of a use in the project."""
    return use.call_site.function.order, use.order


def _uses_one(remote: Remote, call: m.Call) -> bool:
    """Return whether the options of a call make all calls use one process."""
    options = call.function.value if isinstance(call.function, m.Attribute) else None
    return isinstance(options, m.Call) and holds(remote.one, options)


def _is_method(expr: m.Expr, entity: Symbol | None) -> TypeGuard[m.Attribute]:
    """Return whether an expression can be a method of an object of the project."""
    function = as_function(entity)
    owned = function is not None and function.owner is not None
    return isinstance(expr, m.Attribute) and (entity is None or owned)


def _is_named(expr: m.Expr, symbol: Symbol | None) -> bool:
    """Return whether an expression is the name of a class, as in `Base.save(self)`, and not `cls`."""
    return isinstance(symbol, LinkedClass) and symbol.facts.name == last_name(expr)


def _targets(expr: m.Expr, entity: Symbol | None, receiver: LinkedClass | None) -> Iterator[LinkedFunction]:
    """Yield the functions that an expression can refer to. If a class lacks a method, use its subclasses."""
    function = as_function(entity)
    if function is not None:
        yield function
    elif entity is None and receiver is not None and isinstance(expr, m.Attribute):
        found = (class_.methods.get(expr.name) for class_ in receiver.descendants())
        yield from (method for method in found if method is not None)
