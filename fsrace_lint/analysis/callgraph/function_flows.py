"""Every function followed once, on demand, with what its result tells about ranks."""

from __future__ import annotations

import functools
import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from fsrace_lint.analysis.dataflow.interpreter import Interpreter
from fsrace_lint.analysis.dataflow.process_set import ANOTHER, BOTTOM, MAIN, TOP, TWO, ProcessSet
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED
from fsrace_lint.analysis.program.candidate_callers import CandidateCallers
from fsrace_lint.analysis.program.imports import ModuleTable
from fsrace_lint.analysis.ranks.rank_tests import RankTests
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.analysis.values.resolve import Resolver
from fsrace_lint.engine.name_index_entry import further_names
from fsrace_lint.engine.query_cache import CycleDetector, QueryCache
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, ExitPoint, FlowResult
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.program.modules import LinkedFunction, Module
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog import Catalog
    from fsrace_lint.engine.name_index import NameIndex
    from fsrace_lint.syntax import model as m

Answer = TypeVar("Answer")

DEEPEST: Final = 20
"""Through so many functions within functions one is followed."""
_NOTHING: Final[Mapping[str, Module | None]] = MappingProxyType({})
_TAKING: Final = frozenset({"acquire", "release"})
_ENDING: Final = frozenset({"exit", "_exit", "quit", "abort"})


class KnownFlows(Protocol):
    """What is known of an earlier state of the project."""

    def holding(self, flows: FunctionFlows) -> dict[LinkedFunction, FlowResult | None]:
        """Give the flows that hold for another state of the project."""


class FunctionFlows:
    """Holds the flows of a project's functions and answers what they mean.

    While a function is being followed, its own result and its later bindings are
    unknown to the functions that it leads to. What is found with their help is found
    anew when it is asked for by itself, so that it does not depend on who asks first.
    What callers pass is not asked for: `CallerRankTests` does that later.
    """

    def __init__(
        self,
        modules: Iterable[Module],
        catalog: Catalog,
        also: Mapping[str, Module | None] = _NOTHING,
        pulse: Callable[[], None] | None = None,
        *,
        asks_few: bool = False,
        heads: NameIndex | None = None,
        retained: KnownFlows | None = None,
    ) -> None:
        """Link `modules` by name, `also` by further paths; nothing is followed yet.

        `pulse` is called before a function is; what it raises ends the work. `asks_few`
        says that few of the files will be asked about. `heads` are those of the modules,
        if somebody has them already, and `retained` is what is known of an earlier state.
        """
        self._pulse = pulse
        self.asks_few = asks_few
        self.catalog = catalog
        self.also = also
        self.table = self._table(modules, also, heads)
        self.mentions = CandidateCallers(self.table, asks_few=asks_few)
        self.cycles = CycleDetector()
        self.resolver = self._resolver()
        self._rank_tests = RankTests(self.resolver, self.cycles)
        self._flows: QueryCache[LinkedFunction, FlowResult | None] = self._memo(None)
        self._walkers: dict[LinkedFunction, Interpreter] = {}
        self._returned: QueryCache[LinkedFunction, RankPartition] = self._memo(UNPARTITIONED)
        if retained is not None:
            self.remember(retained)

    def _table(
        self, modules: Iterable[Module], also: Mapping[str, Module | None], heads: NameIndex | None
    ) -> ModuleTable:
        return ModuleTable(modules, also, self.catalog.libraries, heads)

    def _resolver(self) -> Resolver:
        return Resolver(self.table, self.catalog, self, self.cycles)

    def _memo(self, unknown: Answer) -> QueryCache[LinkedFunction, Answer]:
        return QueryCache(unknown, DEEPEST, self.cycles)

    def remember(self, retained: KnownFlows) -> None:
        """Take what is known of an earlier state of the project, or of this one, and holds."""
        self._flows.remember(retained.holding(self))

    def flow(self, function: LinkedFunction) -> FlowResult | None:
        """Follow a function.

        Args:
            function: The function.

        Returns:
            What was found, or None while it is being followed already, or where
            too many functions are.
        """
        known = self._flows.known(function)
        if known is not None:
            return known
        code = function.module.code
        if function is not code:
            self._flows.get(code, lambda: self.interpret(code))
        return self._flows.get(function, lambda: self.interpret(function))

    def interpret(self, function: LinkedFunction) -> FlowResult:
        """Follow a function, whatever is known of it."""
        if self._pulse is not None:
            self._pulse()
        interpreter = Interpreter(function, self)
        self._walkers[function] = interpreter
        try:
            return self._by_code_alone(interpreter.interpret)
        finally:
            del self._walkers[function]

    def _by_code_alone(self, find: Callable[[], Answer]) -> Answer:
        """Find something whatever is being found."""
        return self._rank_tests.budget.with_fresh_budget(functools.partial(self.resolver.anew, find))

    def call_sites(self, function: LinkedFunction) -> tuple[CallSite, ...]:
        """Give the calls of a function; none are known while it is being followed."""
        flow = self.flow(function)
        return () if flow is None else flow.call_sites

    def call_sites_before(self, call_site: CallSite) -> Iterator[CallSite]:
        """Give the calls of a function that stand before one of them."""
        return itertools.takewhile(lambda each: each is not call_site, self.call_sites(call_site.function))

    def decorators(self, function: LinkedFunction) -> tuple[Expression, ...]:
        """Give the decorators of a function, to be read with the names at the end of what is around it."""
        outer = function.enclosing if function.facts.decorators else None
        scope = None if outer is None else self.final_environment(outer)
        return () if scope is None else tuple(Expression(expr, scope) for expr in function.facts.decorators)

    def final_environment(self, function: LinkedFunction) -> Environment | None:
        """Give the bindings at the end of a function's code, or those so far while it is being followed."""
        flow = self._flows.known(function)
        if flow is None and self._flows.is_being_answered(function):
            return self._walkers[function].latest
        flow = flow or self.flow(function)
        return None if flow is None else flow.scope

    def exit_points(self, function: LinkedFunction) -> tuple[ExitPoint, ...]:
        """Give the ways out of a function; none are known while it is being followed."""
        flow = self.flow(function)
        return () if flow is None else flow.exits

    def return_values(self, function: LinkedFunction) -> tuple[Expression, ...]:
        """Give what a function returns, each with the names there; nothing while it is being followed."""
        ways = self.exit_points(function)
        return tuple(Expression(way.value, way.state.scope) for way in ways if way.value is not None)

    def result_partition(self, function: LinkedFunction) -> RankPartition:
        """Tell which processes can see a function return something true, and which something false."""
        if function.facts.is_generator:
            return UNPARTITIONED
        find = functools.partial(self._split_by_result, function)
        return self._returned.get(function, lambda: self._by_code_alone(find))

    def partition(self, test: m.Expr, scope: Environment) -> RankPartition:
        """Tell which processes can see a test true, and which false, by the code of its function alone."""
        return self._rank_tests.partition(test, scope)

    def _split_by_result(self, function: LinkedFunction) -> RankPartition:
        flow = self.flow(function)
        if flow is None or not flow.exits:
            return UNPARTITIONED
        true, false = BOTTOM, BOTTOM
        each_picks_one = True
        for way in flow.exits:
            here = (BOTTOM, way.state.processes)
            if way.value is not None:
                split = self.partition(way.value, way.state.scope)
                here = (way.state.processes & split[0], way.state.processes & split[1])
            each_picks_one = each_picks_one and here[0] in {BOTTOM, MAIN, ANOTHER}
            true, false = true | here[0], false | here[1]
        if each_picks_one and true == TWO:
            return MAIN, TOP
        return true, false

    @property
    def flows(self) -> Iterator[tuple[LinkedFunction, FlowResult]]:
        """What was found so far by following functions."""
        return ((function, flow) for function, flow in self._flows.answers.items() if flow is not None)

    def counts(self) -> dict[str, int]:
        """Count the functions, their calls, and the calls whose callee is not known; all are followed."""
        functions = [function for module in self.table.modules for function in module.functions]
        call_sites = [call_site for function in functions for call_site in self.call_sites(function)]
        called = (
            self.resolver.symbol(call_site.call.function, call_site.state.scope) for call_site in call_sites
        )
        unresolved = sum(1 for entity in called if entity is None)
        return {"functions": len(functions), "calls": len(call_sites), "calls-unresolved": unresolved}

    @functools.cached_property
    def _ending(self) -> frozenset[str]:
        """The names by which functions of the project may be called that can end a process."""
        if self.asks_few:
            return self.mentions.denoting
        functions = {function for name in _ENDING for function in self.mentions.of_name(name)}
        return self.mentions.names_for(self.mentions.called(functions))

    @functools.cached_property
    def _telling(self) -> frozenset[str]:
        """The names of calls that may leave the code, or take or release a lock."""
        known = frozenset().union(*(self.catalog.last_names[kind] for kind in ("exit", "suppressor", "lock")))
        return self.mentions.names_of_library(known | _TAKING)

    def returning_processes(self, call: m.Call, scope: Environment) -> ProcessSet:
        """Give the processes that return from a call; only what can end the process is followed."""
        if last_name(call.function) not in self._ending:
            return TOP
        callee = self.resolver.callee(call, scope)
        if callee is None or _ENDING.isdisjoint(callee.facts.mentions) or callee.facts.is_generator:
            return TOP
        flow = self.flow(callee)
        if flow is None:
            return TOP
        processes = BOTTOM
        for way in flow.exits:
            processes |= way.state.processes
        return processes

    @property
    def looked_at(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of calls that may end a process, and of those that tell of one, or of a lock."""
        return self._ending, self._telling

    def newly_looked_at(
        self, before: tuple[frozenset[str], frozenset[str]], modules: Iterable[Module]
    ) -> tuple[set[str], set[str]]:
        """Name the calls that are looked at now for what they do to the flow, and were not before.

        Args:
            before: What was looked at in an earlier state, of which few files were asked about.
            modules: The files that are others since.

        Returns:
            The names, and those of which only what a call gives may do so, if that is called in turn.
        """
        ending: set[str] = set()
        able: set[str] = set()
        for module in modules:
            names, ends = module.head.denoting, not _ENDING.isdisjoint(module.head.mentions)
            ending.update(names)
            able.update(names if ends else further_names(module.facts, results=False))
        ending &= self._ending
        ending -= before[0]
        return {*(self._telling - before[1]), *(ending & able)}, ending - able

    def control_role(self, called: m.Expr, scope: Environment) -> str:
        """Tell what a call of this does to control flow or locks, as `Interpretation` says."""
        if last_name(called) not in self._telling:
            return ""
        name = self.resolver.qualify(called, scope)
        if name is None:
            return ""
        if self.catalog.exact("exit", name) is not None:
            return "exit"
        if self.catalog.exact("suppressor", name) is not None:
            return "suppressor"
        lock = self.catalog.exact("lock", name)
        if lock is not None:
            return str(lock.kind) if lock.kind in _TAKING else ""
        last = name.rpartition(".")[2]
        return last if last in _TAKING and "." in name else ""
