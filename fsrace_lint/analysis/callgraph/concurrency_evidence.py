"""Finds evidence that multiple processes run a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, ConcurrencyTrace, Evidence
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.dataflow.process_set import MAIN, SYNCHRONIZING, TOP
from fsrace_lint.analysis.ranks.rank_sources import TRANSPARENT
from fsrace_lint.analysis.values.abstract_values import Expression, Union
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.analysis.values.trace_back import expressions_of
from fsrace_lint.engine.query import query
from fsrace_lint.files.spans import Place
from fsrace_lint.program.symbols import Instance, as_function
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.identity import Identity
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.call_edges import CallEdge
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog.entries import Launch
    from fsrace_lint.files.spans import Span
    from fsrace_lint.program.modules import LinkedClass, LinkedFunction, Module

_HELPERS_DEPTH: Final = 3
_SETUP_DEPTH: Final = 1
"""The maximum call depth at which a conditional setup of the process group counts as evidence."""
_WRAPPERS_DEPTH: Final = 1
"""The maximum call depth at which a barrier counts as evidence.

Helpers that also work in a single process contain barriers, which show nothing.
"""
_CLASSES_DEPTH: Final = 1
_RUN_BY_HAND: Final = frozenset(
    {"demo", "demos", "examples", "example", "projects", "recipes", "scripts", "tools"}
)
_ASKED: Final = frozenset({"global", "local", "group", "worker"})

_Caller: TypeAlias = "tuple[LinkedFunction, LinkedClass | None]"
"""A function in the call chain, and the class of the object whose method it is."""

_Placed: TypeAlias = "tuple[ConcurrencyMarker, tuple[PathCondition, ...]]"
"""A marker, and the conditions before it."""


class _Step(NamedTuple):
    """A call in the call chain.

    Attributes:
        call_site: The call.
        owner: The class of the object whose method contains the call.
        enters: Whether the chain continues in the called function.
        called: The class of the object whose method is called.
    """

    call_site: CallSite
    owner: LinkedClass | None
    enters: bool = False
    called: LinkedClass | None = None


class _Call(Record, frozen=True, eq=False):
    """A call that leads to a function of the project, or coordinates processes itself.

    Attributes:
        call_site: The call.
        callee: The function of the project that it runs.
        synchronizes: Whether it synchronizes processes.
        launch: The catalog entry, if it starts or sets up processes.
    """

    call_site: CallSite
    callee: LinkedFunction | None
    synchronizes: bool
    launch: Launch | None

    @property
    def launches(self) -> bool:
        """Whether it always starts or sets up multiple processes."""
        return self.launch is not None and self.launch.certain


class _AfterSameTests:
    """A call, equal to all calls in its function with the same conditions."""

    __slots__ = ("_key", "call_site")

    def __init__(self, call_site: CallSite) -> None:
        self.call_site = call_site
        tests = ((Identity(each.test), each.truth) for each in call_site.state.conditions)
        self._key = call_site.function, tuple(tests)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _AfterSameTests) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class ConcurrencyEvidence:
    """Searches functions, their callers, and their callees for markers of multiple processes."""

    def __init__(self, entry_states: EntryStates) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows = entry_states.flows
        self.catalog = entry_states.catalog
        self.entry_states = entry_states

    def trace(self, call_site: CallSite, *, by_one: bool = False) -> ConcurrencyTrace:
        """Return the evidence that multiple processes reach a call.

        Args:
            call_site: The call.
            by_one: Whether one of multiple processes is enough, as for operations that only a crash can harm.

        Returns:
            The evidence, the call chain, and the marker at its end.
        """
        return self._trace(_AfterSameTests(call_site), by_one)

    @query
    def _trace(self, after: _AfterSameTests, by_one: bool) -> ConcurrencyTrace:  # noqa: FBT001  # a part of the key
        """Find the shortest call chain from a function with a marker, or else from a root of the call graph.

        A method is followed only to calls on compatible classes. A marker counts only if one process can pass
        both it and the call. There is no evidence if every call passes a constant that rules the call out, or
        if some edges serialize their processes and the other edges have no marker.
        """
        call_site = after.call_site
        start = _Step(call_site, call_site.function.owner)
        ways: dict[_Step, tuple[CallSite, ...]] = {start: ()}
        waiting = [start]
        callers: dict[_Caller, tuple[CallSite, ...]] = {}
        complete: set[_Caller] = set()
        roots: list[_Caller] = []
        alone: tuple[CallSite, ...] | None = None
        apart = False
        while waiting:
            step = waiting.pop(0)
            here, class_, way = step.call_site, step.owner, ways[step]
            if self._runs_alone(here.function):
                alone = way
                continue
            sign = self._sign(step) or self._sign_around(here, len(way))
            if sign is not None:
                return ConcurrencyTrace(Evidence.EVIDENT, way, sign)
            caller = here.function, class_
            if caller in complete:
                continue
            ways_in, edges, some_apart = self._ways_to(here, by_one=by_one)
            apart = apart or some_apart
            if edges == ways_in:
                complete.add(caller)
            elif not edges:
                alone = way
                continue
            callers.setdefault(caller, way)
            if not ways_in:
                roots.append(caller)
            for edge in edges:
                above = _above(edge, class_)
                if above is not None and above not in ways:
                    ways[above] = (*way, edge.call_site)
                    waiting.append(above)
        if not roots:
            evidence = Evidence.PLAUSIBLE if alone is None else Evidence.NONE
            return ConcurrencyTrace(evidence, alone or (), None)
        way = callers[roots[0]]
        one_shot = all(self._is_one_shot(root) for root, _ in roots)
        alone_here = one_shot and not any(self._may_launch(caller) for caller, _ in callers)
        return ConcurrencyTrace(Evidence.NONE if alone_here or apart else Evidence.PLAUSIBLE, way, None)

    def _ways_to(
        self, call_site: CallSite, *, by_one: bool
    ) -> tuple[tuple[CallEdge, ...], tuple[CallEdge, ...], bool]:
        """Return the call edges, those that count as evidence, and whether others serialize processes."""
        entry_states = self.entry_states
        if by_one:
            edges = entry_states.callers(call_site.function)
            return edges, entry_states.feasible_callers(call_site, edges), False
        ways_in = entry_states.ways_in(call_site.function)
        loose = entry_states.unordered_callers(call_site.function, ways_in)
        showing = entry_states.feasible_callers(
            call_site, entry_states.equally_wide_callers(call_site, loose)
        )
        return ways_in, showing, len(loose) < len(ways_in)

    def _is_one_shot(self, root: LinkedFunction) -> bool:
        """Return whether a root function belongs to code that is run once by hand.

        Such code is a script, or is in a top-level directory for examples and the like. The main code of a
        file in a package is an installed command, of which multiple instances can run at once. It counts as
        run by hand only if the package name contains such a directory and no other file imports it.
        """
        if root.module.relative.split("/")[0] in _RUN_BY_HAND:
            return True
        if not root.module.facts.is_script:
            return False
        if not self._is_packaged(root):
            return True
        by_hand = not _RUN_BY_HAND.isdisjoint(root.module.name.split("."))
        return by_hand and root.index == 0 and not self.flows.resolver.importers(root.module)

    def _is_packaged(self, function: LinkedFunction) -> bool:
        """Return whether a file belongs to a package, so that other code can import it."""
        package = function.module.name.rpartition(".")[0]
        return bool(package) and self.flows.table.exact(package) is not None

    def _may_launch(self, function: LinkedFunction) -> bool:
        """Return whether a function calls a launcher, such as a trainer, that can also run one process."""
        launches = (call.launch for call in self._calls_of(function))
        return any(launch is not None and not launch.certain for launch in launches)

    def _sign(self, step: _Step) -> ConcurrencyMarker | None:
        """Return a marker in the function of a call that shows that multiple processes reach the call.

        A marker in a callee counts only if the call chain does not enter that callee.
        """
        call_site = step.call_site
        entered = (
            _place(call_site.function, call_site.call.span)
            if step.enters and not self._is_sign(call_site)
            else None
        )
        for sign, before in self._signs_of(call_site.function):
            passed = sign.place != entered and not mutually_exclusive(before, call_site.state.conditions)
            if passed and not self._makes_another(sign, step):
                return sign
        return None

    def _is_sign(self, call_site: CallSite) -> bool:
        """Return whether a call itself launches or synchronizes processes, regardless of its callee."""
        return any(
            call.call_site is call_site and (call.synchronizes or call.launches)
            for call in self._calls_of(call_site.function)
        )

    def _makes_another(self, sign: ConcurrencyMarker, step: _Step) -> bool:
        """Return whether a marker is the creation of the receiver of a call, but as an unrelated class."""
        called, scope = step.call_site.call.function, step.call_site.state.scope
        on = called.value if step.called is not None and isinstance(called, m.Attribute) else None
        for made in expressions_of(scope.get(on.id) if isinstance(on, m.Name) else None):
            if (
                isinstance(made.expr, m.Call)
                and _place(step.call_site.function, made.expr.span) == sign.place
            ):
                class_ = self.flows.resolver.class_of(self.flows.resolver.of_binding(made))
                return class_ is not None and step.called not in class_.relatives
        return False

    @query
    def _signs_of(self, function: LinkedFunction) -> tuple[_Placed, ...]:
        """Return all markers in a function, each with the conditions before it."""
        whole = (self._spawned(function), self._hooked(function), self._decorated(function))
        everywhere: list[_Placed] = [(sign, ()) for sign in whole if sign is not None]
        return (*self._ordered(function), *self._asked(function), *everywhere)

    def _sign_around(self, call_site: CallSite, depth: int) -> ConcurrencyMarker | None:
        """Return a marker in an importer of a module, or in another method of the class.

        For a method without callers, only rank checks and coordination count.
        """
        function = call_site.function
        if function.index == 0:
            imported = not any(map(_asks_for_main, call_site.state.conditions))
            return self._sign_of_importers(function.module) if imported else None
        if function.owner is None or depth > _CLASSES_DEPTH:
            return None
        called = bool(self.entry_states.ways_in(function))
        for method in function.owner.methods.values():
            if method is not function:
                signs = self._ordered(method) or (self._asked(method) if called else ())
                if signs:
                    return signs[0][0]
        return None

    def _sign_of_importers(self, module: Module) -> ConcurrencyMarker | None:
        """Return a marker in a file that imports a module, directly or indirectly."""
        found, waiting = {module}, [module]
        while waiting:
            for importer in self.flows.resolver.importers(waiting.pop(0)):
                if importer in found:
                    continue
                for sign, _ in self._signs_of(importer.functions[0]):
                    return sign
                found.add(importer)
                waiting.append(importer)
        return None

    @query
    def _asked(self, function: LinkedFunction) -> tuple[_Placed, ...]:
        """Return the calls in a function that return the process rank, as markers."""
        return tuple(self._find_asked(function))

    def _find_asked(self, function: LinkedFunction) -> Iterator[_Placed]:
        for call_site in self.flows.call_sites(function):
            asks = (
                isinstance(call_site.call.function, (m.Name, m.Attribute))
                and call_site.state.processes != MAIN
            )
            asks = (
                asks
                and self.entry_states.rank_tests.rank_scope(call_site.call, call_site.state.scope) in _ASKED
            )
            if asks and not self._converts(call_site):
                what = f"`{spell(call_site.call)}` returns the process rank"
                yield _sign(function, call_site.call.span, what), call_site.state.conditions

    def _converts(self, call_site: CallSite) -> bool:
        """Return whether a call only converts a variable, as a launcher does with the number of a child."""
        name = self.flows.resolver.qualify(call_site.call.function, call_site.state.scope)
        values = call_site.call.arguments[:1]
        return name in TRANSPARENT and any(isinstance(value, (m.Name, m.Attribute)) for value in values)

    @query
    def _ordered(self, function: LinkedFunction) -> tuple[_Placed, ...]:
        """Return the rank checks and coordinating calls in a function, as markers."""
        return tuple(self._find_ordered(function))

    def _find_ordered(self, function: LinkedFunction) -> Iterator[_Placed]:
        flow = self.flows.flow(function)
        for test in () if flow is None else flow.rank_tests:
            asked = "the process rank" if test.is_for_rank else "whether the job is distributed"
            checked = test.test.value if isinstance(test.test, m.Not) else test.test
            yield _sign(function, test.span, f"`{spell(checked)}` checks {asked}"), test.conditions
        for call_site in self._coordinating(function, 0):
            called, leaf = spell(call_site.call.function), self._leaf(call_site, 0)
            via = "" if leaf == called else f", which `{called}()` calls"
            what = f"`{leaf}()` coordinates processes{via}"
            yield _sign(function, call_site.call.span, what), call_site.state.conditions

    def _leaf(self, call_site: CallSite, depth: int) -> str:
        """Return the framework call that a call leads to, as spelled in the source."""
        callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
        inner = () if callee is None else self._coordinating(callee, depth + 1)
        return self._leaf(inner[0], depth + 1) if inner else spell(call_site.call.function)

    def _coordinating(self, function: LinkedFunction, depth: int) -> tuple[CallSite, ...]:
        """Return the calls in a function that launch or synchronize processes, directly or in callees."""
        if depth > _HELPERS_DEPTH:
            return ()
        return self._coordinates(function, depth)

    @query(provisional=())
    def _coordinates(self, function: LinkedFunction, depth: int) -> tuple[CallSite, ...]:
        return tuple(self._finds(function, depth))

    def _finds(self, function: LinkedFunction, depth: int) -> Iterator[CallSite]:
        for call in self._calls_of(function):
            near = _SETUP_DEPTH if call.launch is not None and call.launch.creates_group else 0
            launches = call.launches and (depth <= near or not self._is_on_demand(call.call_site))
            shows = launches or (depth <= _WRAPPERS_DEPTH and call.synchronizes)
            if shows or self._leads(call, depth + 1):
                yield call.call_site

    def _is_on_demand(self, call_site: CallSite) -> bool:
        """Return whether a call runs only after a test shows that the job has multiple processes."""
        for literal in call_site.state.conditions:
            for test, truth in _implied(literal.test, truth=literal.truth):
                split = self.entry_states.rank_tests.partition(test, literal.scope)
                if (split if truth else split[::-1]) == (TOP, MAIN):
                    return True
        return False

    @query
    def _calls_of(self, function: LinkedFunction) -> tuple[_Call, ...]:
        """Return the calls in a function that may coordinate processes."""
        return tuple(self._find_calls(function))

    def _find_calls(self, function: LinkedFunction) -> Iterator[_Call]:
        resolver = self.flows.resolver
        for call_site in self.flows.call_sites(function):
            entity = resolver.symbol(call_site.call.function, call_site.state.scope)
            name = None if isinstance(entity, Instance) else resolver.type_name(entity)
            callee = as_function(entity)
            synchronizes = self._is_for_several(name or f"*.{last_name(call_site.call.function)}")
            launch: Launch | None = self.catalog.find("launch", name)
            if callee is not None or synchronizes or launch is not None:
                yield _Call(call_site, callee, synchronizes, launch)

    def _leads(self, call: _Call, depth: int) -> bool:
        """Return whether the callee coordinates processes, given the constants that the call passes."""
        callee = call.callee
        return callee is not None and any(
            not is_infeasible(call.call_site, callee, inner.state)
            for inner in self._coordinating(callee, depth)
        )

    def _is_for_several(self, name: str) -> bool:
        """Return whether a call synchronizes processes, and is neither conditional nor a model-wide save."""
        saver = self.catalog.find("collective-saver", name)
        certain = saver is None or (saver.when == "always" and saver.certain)
        return certain and self.catalog.is_any(SYNCHRONIZING, name)

    def synchronizes(self, call_site: CallSite) -> bool:
        """Return whether processes synchronize in a call, directly or in callees."""
        return any(call_site is sync_point for sync_point in self._coordinating(call_site.function, 0))

    def is_shown_in_file(self, function: LinkedFunction) -> bool:
        """Return whether any function in the file of a function has a marker."""
        inside = function.module.functions
        return any(any(map(signs, inside)) for signs in (self._ordered, self._asked, self._signs_of))

    def _runs_alone(self, function: LinkedFunction) -> bool:
        """Return whether a function fails in multiple processes, or launches exactly one process."""
        flow = self.flows.flow(function)
        if flow is not None and flow.fails_if_parallel:
            return True
        for found in self._calls_of(function):
            if found.launch is not None and found.launch.count:
                call, scope = found.call_site.call, found.call_site.state.scope
                count = library_argument(call, found.launch.count)
                if count is not None and self._is_one(Expression(count, scope)) and not _asks_for_nodes(call):
                    return True
        return False

    def _is_one(self, number: Binding | None) -> bool:
        """Return whether a number is the literal 1, also by name."""
        match number:
            case Expression(expr=m.Name() | m.Attribute() as name, scope=scope):
                return self._is_one(self.entry_states.rank_tests.known(name, scope))
            case Expression(expr=expr):
                return expr == m.Constant(1)
            case Union(options=options):
                return all(map(self._is_one, options))
            case _:
                return False

    def _spawned(self, function: LinkedFunction) -> ConcurrencyMarker | None:
        for edge in self.entry_states.callers(function):
            if edge.starts_several:
                call_site = edge.call_site
                what = f"`{spell(call_site.call.function)}()` starts the processes that run it"
                return _sign(call_site.function, call_site.call.span, what)
        return None

    def _hooked(self, function: LinkedFunction) -> ConcurrencyMarker | None:
        hook = self.entry_states.hooks.of(function)
        if hook is None or hook.runs not in {"every", "worker"}:
            return None
        who = "every process" if hook.runs == "every" else "every worker process"
        return _sign(function, function.facts.span, f"the framework calls `{function.facts.name}()` in {who}")

    def _decorated(self, function: LinkedFunction) -> ConcurrencyMarker | None:
        """Return the decorator that runs a function in multiple processes, as a marker."""
        for decorator in self.flows.decorators(function):
            for expr in _calls_and_names(decorator.expr):
                name = self.flows.resolver.qualify(expr, decorator.scope)
                launch = self.catalog.find("launch", name)
                if self.catalog.find("spawn", name) is not None or (launch is not None and launch.certain):
                    what = f"`@{spell(decorator.expr)}` runs it in multiple processes"
                    return _sign(function, function.facts.span, what)
        return None


def _asks_for_main(literal: PathCondition) -> bool:
    """Return whether a test is `__name__ == "__main__"`, which is false in an imported file."""
    return isinstance(literal.test, m.Compare) and literal.test.left == m.Name("__name__")


def _asks_for_nodes(call: m.Call) -> bool:
    nodes = library_argument(call, ":num_nodes")
    return nodes is not None and nodes != m.Constant(1)


def _calls_and_names(decorator: m.Expr) -> tuple[m.Expr, ...]:
    """Return the function of a decorator, and the functions of the calls in its arguments."""
    if not isinstance(decorator, m.Call):
        return (decorator,)
    values = (*decorator.arguments, *(keyword.value for keyword in decorator.keywords))
    return (decorator.function, *(value.function for value in values if isinstance(value, m.Call)))


def _above(edge: CallEdge, class_: LinkedClass | None) -> _Step | None:
    """Return the step for a call edge, or None if the edge is a call on an unrelated class."""
    function = edge.call_site.function
    receiver = edge.receiver or (function.owner if edge.is_on_self else None)
    if receiver is not None and class_ is not None and not edge.passed_as_callback:
        if class_ not in receiver.ancestors() and receiver not in class_.ancestors():
            return None
        class_ = class_ if receiver in class_.ancestors() else receiver
    if edge.is_on_self and not edge.passed_as_callback:
        return _Step(edge.call_site, class_, enters=True)
    called = class_ if edge.receiver is not None else None
    return _Step(edge.call_site, function.owner, not edge.passed_as_callback, called)


def _implied(test: m.Expr, *, truth: bool) -> Iterator[tuple[m.Expr, bool]]:
    """Yield the parts of a test whose outcome is implied, each with its outcome."""
    match test:
        case m.Not(value=value):
            yield from _implied(value, truth=not truth)
        case m.Boolean(operator=operator, values=values) if (operator == "and") == truth:
            for value in values:
                yield from _implied(value, truth=truth)
        case _:
            yield test, truth


def _sign(function: LinkedFunction, span: Span, text: str) -> ConcurrencyMarker:
    return ConcurrencyMarker(_place(function, span), text)


def _place(function: LinkedFunction, span: Span) -> Place:
    return Place(function.module.path, span)
