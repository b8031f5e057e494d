"""Finds markers: places in a function that show that multiple processes run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from fsrace_lint.analysis.callgraph.call_edges import CallEdge
from fsrace_lint.analysis.callgraph.chain_constants import ChainConstants
from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, Evidence
from fsrace_lint.analysis.callgraph.drivers import Drivers
from fsrace_lint.analysis.callgraph.joined_jobs import JoinedJobs
from fsrace_lint.analysis.callgraph.synchronizing_calls import synchronizes
from fsrace_lint.analysis.dataflow.infeasible_paths import is_infeasible
from fsrace_lint.analysis.dataflow.process_set import MAIN, TOP
from fsrace_lint.analysis.dataflow.rank_partition import WHETHER_DISTRIBUTED
from fsrace_lint.analysis.ranks.rank_sources import TRANSPARENT
from fsrace_lint.analysis.values.abstract_values import Expression, Union
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.catalog.lexicon import says
from fsrace_lint.engine.query import query
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.program.symbols import Instance, as_function
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import implied, last_name
from fsrace_lint.syntax.record import Record
from fsrace_lint.syntax.traversal import within
from fsrace_lint.syntax.unparse import spell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.chain_constants import Calls
    from fsrace_lint.analysis.callgraph.concurrency import Role
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, PathCondition
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog.entries import Launch, Spawn
    from fsrace_lint.program.modules import LinkedFunction, Module
    from fsrace_lint.program.programs import Programs

_HELPERS_DEPTH: Final = 3
_SETUP_DEPTH: Final = 1
"""The maximum call depth at which a conditional setup of the process group counts as evidence."""
_WRAPPERS_DEPTH: Final = 1
"""The maximum call depth at which a barrier counts as evidence.

Helpers that also work in a single process contain barriers, which show nothing.
"""
_ASKED: Final = frozenset({"global", "local", "group", "worker"})

Placed: TypeAlias = "tuple[ConcurrencyMarker, tuple[PathCondition, ...]]"
"""A marker, and the conditions before it."""


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


class ConcurrencyMarkers:
    """Finds the markers in functions and in their callees."""

    def __init__(self, entry_states: EntryStates, programs: Programs) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows = entry_states.flows
        self.catalog = entry_states.catalog
        self.entry_states = entry_states
        self.programs = programs
        self.drivers = Drivers(self.flows)
        self.constants = ChainConstants(entry_states)
        self.jobs = JoinedJobs(entry_states.flows)

    @query
    def of(self, function: LinkedFunction) -> tuple[Placed, ...]:
        """Return all markers in a function, each with the conditions before it."""
        whole = (
            self.launched(function),
            self._spawned(function),
            self.hooked(function),
            self._decorated(function),
        )
        everywhere: list[Placed] = [(marker, ()) for marker in whole if marker is not None]
        return (*self.ordered(function), *self.asked(function), *everywhere)

    def may_launch(self, function: LinkedFunction) -> bool:
        """Return whether a function calls a launcher, such as a trainer, that can also run one process."""
        launches = (call.launch for call in self._calls_of(function))
        return any(launch is not None and not launch.certain for launch in launches)

    def is_marker(self, call_site: CallSite) -> bool:
        """Return whether a call itself launches or synchronizes processes, regardless of its callee."""
        return any(
            call.call_site is call_site and (call.synchronizes or call.launches)
            for call in self._calls_of(call_site.function)
        )

    @query
    def asked(self, function: LinkedFunction) -> tuple[Placed, ...]:
        """Return the calls in a function that return the process rank, as markers."""
        return tuple(self._find_asked(function))

    def _find_asked(self, function: LinkedFunction) -> Iterator[Placed]:
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
                what = f"the code gets the rank with `{spell(call_site.call)}`"
                yield _marker(function, call_site.call.span, what), call_site.state.conditions

    def _converts(self, call_site: CallSite) -> bool:
        """Return whether a call only converts a variable, as a launcher does with the number of a child."""
        name = self.flows.resolver.qualify(call_site.call.function, call_site.state.scope)
        values = call_site.call.arguments[:1]
        return name in TRANSPARENT and any(isinstance(value, (m.Name, m.Attribute)) for value in values)

    @query
    def ordered(self, function: LinkedFunction) -> tuple[Placed, ...]:
        """Return the rank checks and coordinating calls in a function, as markers."""
        return tuple(self._find_ordered(function))

    def _find_ordered(self, function: LinkedFunction) -> Iterator[Placed]:
        flow = self.flows.flow(function)
        for test in () if flow is None else flow.rank_tests:
            asked = "distinguishes ranks" if test.is_for_rank else "checks whether the job is distributed,"
            checked = test.test.value if isinstance(test.test, m.Not) else test.test
            what = f"the code {asked} with `{spell(checked)}`"
            marker = _marker(function, test.span, what)
            yield replace(marker, needs_job=self._asks_for_option(checked, function)), test.conditions
        for call_site in self._coordinating(function, 0):
            chain = tuple(self._to_framework(call_site))
            called, leaf = (spell(each.call.function) for each in (call_site, chain[-1]))
            via = "" if leaf == called else f", which `{called}()` calls,"
            joins = self._starts(chain[-1])
            starts = joins and all(map(_is_setup, chain[:-1]))
            what = f"`{leaf}()`{via} {'joins a distributed job' if joins else 'waits for all ranks'}"
            evident = starts and not any(map(self._is_conditional, chain))
            make = _started if evident else _marker
            marker = make(function, call_site.call.span, what)
            direct = len(chain) == 1
            needs = joins and self.jobs.needs_group(chain[-1])
            yield replace(marker, starts=starts, direct=direct, needs_job=needs), call_site.state.conditions

    def _asks_for_option(self, test: m.Expr, function: LinkedFunction) -> bool:
        """Return whether a check asks only attributes of variables for a rank, such as `args.local_rank`."""
        own = {parameter.name for parameter in function.facts.parameters[:1] if function.takes_object}
        parts = list(within(test))
        named = (part.id for part in parts if isinstance(part, m.Name))
        is_named = any(name in own or self.catalog.find("variable", name) is not None for name in named)
        return not is_named and not any(isinstance(part, (m.Call, m.Subscript)) for part in parts)

    def _to_framework(self, call_site: CallSite) -> Iterator[CallSite]:
        """Yield a call that coordinates processes, and the calls by which it reaches the framework."""
        yield call_site
        callee = self.flows.resolver.callee(call_site.call, call_site.state.scope)
        if callee is not None:
            yield from self._way_down(call_site, callee, (), 1)

    def _way_down(
        self, call_site: CallSite, callee: LinkedFunction, before: Calls, depth: int
    ) -> tuple[CallSite, ...]:
        """Return the calls by which a call reaches the framework with the constants that are passed.

        Args:
            call_site: The call.
            callee: The function that it calls.
            before: The calls that lead to the call, the nearest one first.
            depth: The call depth of the callee.
        """
        calls = CallEdge(call_site, passed_as_callback=False), *before
        for inner in self._coordinating(callee, depth):
            is_ruled_out = is_infeasible(call_site, callee, inner.state)
            if is_ruled_out or self.constants.feasibility(inner.state.conditions, calls).is_ruled_out:
                continue
            further = self.flows.resolver.callee(inner.call, inner.state.scope)
            if further is None or not self._coordinating(further, depth + 1):
                return (inner,)
            way = self._way_down(inner, further, calls, depth + 1)
            if way or self.is_marker(inner):
                return (inner, *way)
        return ()

    def _starts(self, call_site: CallSite) -> bool:
        """Return whether a call starts processes or joins a job, and does not only synchronize."""
        return any(
            call.call_site is call_site and call.launches for call in self._calls_of(call_site.function)
        )

    def _is_conditional(self, call_site: CallSite) -> bool:
        """Return whether a setting decides whether a call runs, and not only an earlier setup of the job.

        A test without which the program fails, such as an assertion, does not count.
        """
        conditions = (each for each in call_site.state.conditions if each.exit != "raise")
        tests = (literal for literal in conditions if not asks_for_main(literal))
        return self._is_on_demand(call_site) or any(
            literal.attempt is None and not self.asks_for_job(literal) for literal in tests
        )

    def asks_for_job(self, literal: PathCondition) -> bool:
        """Return whether a condition only tests whether the job is set up already."""
        return self.entry_states.rank_tests.partition(literal.test, literal.scope) in WHETHER_DISTRIBUTED

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
            waits = depth <= _WRAPPERS_DEPTH and call.synchronizes
            shows = launches or (waits and not (depth and self._is_optional(call.call_site)))
            if shows or (self._is_in_job(call) and self._leads(call, depth + 1)):
                yield call.call_site

    def _is_optional(self, call_site: CallSite) -> bool:
        """Return whether a constructor synchronizes processes only if there are multiple."""
        return call_site.function.facts.name == "__init__" and self._is_on_demand(call_site)

    def _is_in_job(self, call: _Call) -> bool:
        """Return whether a callee runs in the processes of a job, if it coordinates them.

        In a driver, it can do so only in the processes that the driver starts, unless it sets up a job.
        """
        return not self.drivers.is_driver(call.call_site.function) or _is_setup(call.call_site)

    def _is_on_demand(self, call_site: CallSite) -> bool:
        """Return whether a call runs only after a test shows that the job has multiple processes."""
        for literal in call_site.state.conditions:
            for test, truth in implied(literal.test, truth=literal.truth):
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
            called = name or f"*.{last_name(call_site.call.function)}"
            synchronizes = self._is_for_several(called, call_site.call)
            launch: Launch | None = self.catalog.find("launch", name)
            if callee is not None or synchronizes or launch is not None:
                yield _Call(call_site, callee, synchronizes, launch)

    def _leads(self, call: _Call, depth: int) -> bool:
        """Return whether the callee coordinates processes, given the constants that the call passes."""
        return call.callee is not None and bool(self._way_down(call.call_site, call.callee, (), depth))

    def _is_for_several(self, name: str, call: m.Call) -> bool:
        """Return whether a call synchronizes processes, and is neither conditional nor a model-wide save."""
        saver = self.catalog.find("collective-saver", name)
        certain = saver is None or (saver.when == "always" and saver.certain)
        return certain and synchronizes(self.catalog, name, call)

    def synchronizes(self, call_site: CallSite) -> bool:
        """Return whether processes synchronize in a call, directly or in callees."""
        return any(call_site is sync_point for sync_point in self._coordinating(call_site.function, 0))

    def is_shown_in_file(self, function: LinkedFunction) -> bool:
        """Return whether any function in the file of a function has a marker."""
        inside = function.module.functions
        return any(any(map(markers, inside)) for markers in (self.ordered, self.asked, self.of))

    @query
    def is_distributed(self, module: Module) -> bool:
        """Return whether a file checks ranks, synchronizes processes, or can start processes.

        A trainer without an argument for the number of processes starts none.
        """
        checks = (self.ordered, self.asked, self._can_start)
        return any(check(function) for function in module.functions for check in checks)

    def _can_start(self, function: LinkedFunction) -> bool:
        """Return whether a function calls a launcher that an argument tells the number of processes."""
        return any(call.launch is not None and call.launch.count for call in self._calls_of(function))

    def runs_alone(self, function: LinkedFunction) -> bool:
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

    def launched(
        self, function: LinkedFunction, words: tuple[str, ...] | None = None
    ) -> ConcurrencyMarker | None:
        """Return a command in the repository that starts multiple processes of a program, as a marker.

        Args:
            function: The function that the program runs.
            words: The arguments of the command, or None for any.
        """
        for launch in self.programs.launches_of(function):
            if launch.several and words in {None, launch.arguments}:
                place = Place(launch.reported, Span(launch.line, 1, launch.line, 1))
                number = "multiple" if launch.processes is None else launch.processes
                given = " with different arguments" if launch.varies else ""
                return ConcurrencyMarker(
                    place,
                    f"`{launch.command}` starts {number} {launch.role}s{given}",
                    Evidence.EVIDENT,
                    starts=True,
                    role=launch.role,
                    is_launch=True,
                    varies=launch.varies,
                )
        return None

    def _spawned(self, function: LinkedFunction) -> ConcurrencyMarker | None:
        """Return the call that starts multiple processes of a function, or of the object of a method."""
        owner = function.owner
        constructor = owner.method("__init__") if owner is not None and owner.facts.decorators else None
        started = (function,) if constructor is None else (function, constructor)
        for edge in (edge for each in started for edge in self.entry_states.callers(each)):
            if edge.spawn is not None and edge.starts_several:
                call_site = edge.call_site
                what = f"`{spell(call_site.call.function)}()` starts the processes that run it"
                marker = _started(call_site.function, call_site.call.span, what)
                return replace(marker, role=_role(edge.spawn))
        return None

    @query
    def hooked(self, function: LinkedFunction) -> ConcurrencyMarker | None:
        """Return the framework that calls a function, as a marker.

        A hook that restores a state is none: what it would create exists already.
        """
        hook = self.entry_states.hooks.of(function)
        if hook is None or hook.runs not in {"every", "worker"} or hook.restores:
            return None
        who = "every process" if hook.runs == "every" else "every worker process"
        what = f"the framework calls `{function.facts.name}()` in {who}"
        marker = _marker(function, function.facts.span, what)
        return replace(marker, role="rank" if hook.runs == "every" else "worker")

    def _decorated(self, function: LinkedFunction) -> ConcurrencyMarker | None:
        """Return the decorator that runs a function in multiple processes, as a marker."""
        for decorator in self.flows.decorators(function):
            for expr in _calls_and_names(decorator.expr):
                name = self.flows.resolver.qualify(expr, decorator.scope)
                launch, spawn = self.catalog.find("launch", name), self.catalog.find("spawn", name)
                if spawn is not None or (launch is not None and launch.certain):
                    what = f"`@{spell(decorator.expr)}` runs it in multiple processes"
                    marker = _started(function, function.facts.span, what)
                    return replace(marker, role="rank" if spawn is None else _role(spawn))
        return None


def _role(spawn: Spawn) -> Role:
    """Return what the processes are that a call starts."""
    return "rank" if spawn.passes_rank or spawn.starts_job else "worker"


def _is_setup(call_site: CallSite) -> bool:
    """Return whether a call is named after the setup of a job. `train()` is the job itself."""
    return says(last_name(call_site.call.function), "setup")


def asks_for_main(literal: PathCondition) -> bool:
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


def _marker(function: LinkedFunction, span: Span, text: str) -> ConcurrencyMarker:
    """Return a marker that shows that the code tells processes apart, or synchronizes them."""
    return ConcurrencyMarker(Place(function.module.path, span), text)


def _started(function: LinkedFunction, span: Span, text: str) -> ConcurrencyMarker:
    """Return a marker that shows that multiple processes are started."""
    return ConcurrencyMarker(Place(function.module.path, span), text, Evidence.EVIDENT, starts=True)
