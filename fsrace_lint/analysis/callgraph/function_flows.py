"""The flows of functions, interpreted once and on demand."""

from __future__ import annotations

import functools
import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from fsrace_lint.analysis.dataflow.interpreter import Interpreter
from fsrace_lint.analysis.dataflow.process_set import ANOTHER, BOTTOM, MAIN, TOP, TWO, ProcessSet
from fsrace_lint.analysis.dataflow.rank_partition import UNPARTITIONED, union
from fsrace_lint.analysis.ranks.rank_objects import is_without_object
from fsrace_lint.analysis.ranks.rank_tests import RankTests
from fsrace_lint.analysis.values.abstract_values import Expression
from fsrace_lint.analysis.values.resolve import Resolver
from fsrace_lint.engine.cycles import CycleDetector
from fsrace_lint.engine.parallel.progress import SILENT
from fsrace_lint.engine.query import Table, lazy, query
from fsrace_lint.program.changes import Snapshot
from fsrace_lint.program.module_table import ModuleTable
from fsrace_lint.program.relevance import Exhaustive, Relevance
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.analysis.dataflow.abstract_state import CallSite, ExitPoint, FlowResult, YieldPoint
    from fsrace_lint.analysis.dataflow.rank_partition import RankPartition
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.catalog import Catalog
    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.engine.parallel.progress import Observer
    from fsrace_lint.program.modules import LinkedFunction, Module
    from fsrace_lint.program.name_index import NameIndex

Answer = TypeVar("Answer")

DEEPEST: Final = 20
"""The maximum depth of functions that are interpreted within each other."""
_NOTHING: Final[Mapping[str, Module | None]] = MappingProxyType({})
_TAKING: Final = frozenset({"acquire", "release"})
_ACTING: Final = _TAKING | {"enter"}
_GROUP: Final = ("rank", "world", "guard")
_ENDING: Final = frozenset({"exit", "_exit", "quit", "abort"})


class FunctionFlows:
    """Holds the flows of the functions of a project, and answers queries about their meaning.

    While a function is being interpreted, its result and its later bindings are unknown to the functions
    that it leads to. Results that depend on them are computed again when they are requested directly, so that
    they do not depend on the order of requests. The arguments of callers are not used here: `CallerRankTests`
    adds them later.
    """

    def __init__(
        self,
        modules: Iterable[Module],
        catalog: Catalog,
        also: Mapping[str, Module | None] = _NOTHING,
        observer: Observer = SILENT,
        *,
        targeted: bool = False,
        exhaustive: bool = False,
        heads: NameIndex | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        """Link the modules; nothing is interpreted yet.

        Args:
            modules: The modules of the project.
            catalog: The library models.
            also: Modules by further paths, which are links.
            observer: Called before each function is interpreted. An exception from it stops the analysis.
            targeted: Whether only a few of the files are queried.
            exhaustive: Whether to interpret everything, without skipping irrelevant code.
            heads: The name index of the modules, if it is already built.
            dependencies: Records the inputs of results.
        """
        self._observer = observer
        self.catalog = catalog
        self.also = also
        self.dependencies = dependencies
        self.table = ModuleTable(modules, also, self.catalog.libraries, heads, dependencies)
        self.relevance = Exhaustive(self.table) if exhaustive else Relevance(self.table, targeted=targeted)
        self.cycles = CycleDetector()
        self.resolver = Resolver(self.table, self.catalog, self, self.cycles)
        self._rank_tests = RankTests(self.resolver, self.cycles)
        self._interpreters: dict[LinkedFunction, Interpreter] = {}

    def flow(self, function: LinkedFunction) -> FlowResult | None:
        """Interpret a function.

        Args:
            function: The function.

        Returns:
            The result, or None if the function is already being interpreted or the depth limit is reached.
        """
        known = self.known_flows.known(function)
        if known is not None:
            return known
        code = function.module.code
        if function is not code:
            self._flow(code)
        return self._flow(function)

    @query(provisional=None, shared=True, limit=DEEPEST)
    def _flow(self, function: LinkedFunction) -> FlowResult | None:
        return self.interpret(function)

    def interpret(self, function: LinkedFunction) -> FlowResult:
        """Interpret a function, without a cached result."""
        self._observer.checkpoint()
        if self.dependencies is not None:
            self.dependencies.file(function.module.relative)
        interpreter = Interpreter(function, self)
        self._interpreters[function] = interpreter
        try:
            return self._by_code_alone(interpreter.interpret)
        finally:
            del self._interpreters[function]

    def _by_code_alone(self, find: Callable[[], Answer]) -> Answer:
        """Compute a result with a fresh budget, whatever else is being computed."""
        return self._rank_tests.budget.with_fresh_budget(
            functools.partial(self.resolver.budget.with_fresh_budget, find)
        )

    def call_sites(self, function: LinkedFunction) -> tuple[CallSite, ...]:
        """Return the call sites of a function, or nothing while it is being interpreted."""
        flow = self.flow(function)
        return () if flow is None else flow.call_sites

    def call_sites_before(self, call_site: CallSite) -> Iterator[CallSite]:
        """Yield the call sites of a function before one of them."""
        return itertools.takewhile(lambda each: each is not call_site, self.call_sites(call_site.function))

    def decorators(self, function: LinkedFunction) -> tuple[Expression, ...]:
        """Return the decorators of a function, with the environment at the end of the enclosing code."""
        outer = function.enclosing if function.facts.decorators else None
        scope = None if outer is None else self.final_environment(outer)
        return () if scope is None else tuple(Expression(expr, scope) for expr in function.facts.decorators)

    def final_environment(self, function: LinkedFunction) -> Environment | None:
        """Return the bindings at the end of a function, or the current ones while it is being interpreted."""
        flow = self.known_flows.known(function)
        if flow is None:
            if self.known_flows.is_active(function):
                return self._interpreters[function].latest
            flow = self.flow(function)
        return None if flow is None else flow.scope

    @lazy
    def known_flows(self) -> Table[[LinkedFunction], FlowResult | None]:
        """The flows that are already computed."""
        return FunctionFlows._flow.table(self)

    def exit_points(self, function: LinkedFunction) -> tuple[ExitPoint, ...]:
        """Return the exit points of a function, or nothing while it is being interpreted."""
        flow = self.flow(function)
        return () if flow is None else flow.exits

    def yield_points(self, function: LinkedFunction) -> tuple[YieldPoint, ...]:
        """Return the points at which a generator yields, or nothing while it is being interpreted."""
        flow = self.flow(function) if function.facts.is_generator else None
        return () if flow is None else flow.yields

    def result_points(self, function: LinkedFunction) -> Sequence[ExitPoint]:
        """Return the exit points of a function, or the points at which a generator yields."""
        return self.yield_points(function) if function.facts.is_generator else self.exit_points(function)

    def return_values(self, function: LinkedFunction) -> tuple[Expression, ...]:
        """Return the return values of a function, or nothing while it is being interpreted."""
        ways = self.exit_points(function)
        return tuple(Expression(way.value, way.state.scope) for way in ways if way.value is not None)

    def call_results(self, expr: m.Expr, scope: Environment) -> tuple[Expression, ...]:
        """Return the return values of the function of the project that an expression calls, if any."""
        callee = self.resolver.callee(expr, scope) if isinstance(expr, m.Call) else None
        return () if callee is None else self.return_values(callee)

    def result_partition(self, function: LinkedFunction) -> RankPartition:
        """Return the processes for which a function can return a true value, and a false value."""
        if function.is_stub and (overrides := function.overrides):
            return union([self.result_partition(each) for each in overrides])
        is_known = not function.is_stub and not function.facts.is_generator
        return self._result_partition(function) if is_known else UNPARTITIONED

    @query(provisional=UNPARTITIONED, shared=True, limit=DEEPEST)
    def _result_partition(self, function: LinkedFunction) -> RankPartition:
        return self._by_code_alone(functools.partial(self._split_by_result, function))

    def partition(self, test: m.Expr, scope: Environment) -> RankPartition:
        """Return the processes for which a test can be true, and false, without information about callers."""
        return self._rank_tests.partition(test, scope)

    def _split_by_result(self, function: LinkedFunction) -> RankPartition:
        flow = self.flow(function)
        if flow is None or not flow.exits:
            return UNPARTITIONED
        true, false = BOTTOM, BOTTOM
        each_picks_one = True
        for way in flow.exits:
            split = (BOTTOM, TOP) if way.value is None else self.partition(way.value, way.state.scope)
            processes = way.state.processes & self._returning_default(way, flow) or way.state.processes
            here = (processes & split[0], processes & split[1])
            each_picks_one = each_picks_one and here[0] in {BOTTOM, MAIN, ANOTHER}
            true, false = true | here[0], false | here[1]
        if each_picks_one and true == TWO:
            return MAIN, TOP
        return true, false

    @staticmethod
    def _returning_default(way: ExitPoint, flow: FlowResult) -> ProcessSet:
        """Return the processes that take an exit, as far as it returns a constant for want of an object."""
        values = [other.value for other in flow.exits if other.value is not None]
        is_default = isinstance(way.value, m.Constant) and is_without_object(way.state.conditions, values)
        return MAIN if is_default else TOP

    @property
    def snapshot(self) -> Snapshot:
        """The inputs of results, to compare with a later state of the project."""
        links = {link: module.relative for link, module in self.also.items() if module is not None}
        return Snapshot(self.table, links, self.ending | self.controlling)

    def counts(self) -> dict[str, int]:
        """Interpret all functions, and count the functions, their calls, and the unresolved calls."""
        functions = [function for module in self.table.modules for function in module.functions]
        call_sites = [call_site for function in functions for call_site in self.call_sites(function)]
        called = (
            self.resolver.symbol(call_site.call.function, call_site.state.scope) for call_site in call_sites
        )
        unresolved = sum(1 for entity in called if entity is None)
        return {"functions": len(functions), "calls": len(call_sites), "calls-unresolved": unresolved}

    @lazy
    def ending(self) -> frozenset[str]:
        """The names of the functions of the project that may end the process."""
        relevance = self.relevance

        def find() -> frozenset[str]:
            return relevance.project_names(relevance.called(relevance.using(_ENDING)))

        return relevance.filtered(find, relevance.denoting)

    @lazy
    def controlling(self) -> frozenset[str]:
        """The names of calls that can exit, suppress exceptions, or acquire or release a lock."""
        known = frozenset().union(*(self.catalog.last_names[kind] for kind in ("exit", "suppressor", "lock")))
        return self.relevance.library_names(known | _TAKING)

    def returning_processes(self, call: m.Call, scope: Environment) -> ProcessSet:
        """Return the processes that return from a call; only functions that can end the process matter."""
        if last_name(call.function) not in self.ending:
            return TOP
        callee = self.resolver.callee(call, scope)
        if callee is None or _ENDING.isdisjoint(callee.facts.referenced_names) or callee.facts.is_generator:
            return TOP
        flow = self.flow(callee)
        if flow is None:
            return TOP
        processes = BOTTOM
        for way in flow.exits:
            processes |= way.state.processes
        return processes

    def control_role(self, called: m.Expr, scope: Environment) -> str:
        """Return the effect of a call on control flow or locks, as `Interpretation.control_role` does."""
        if last_name(called) not in self.controlling:
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
            return str(lock.kind) if lock.kind in _ACTING else ""
        last = name.rpartition(".")[2]
        is_other = last not in _TAKING or "." not in name or self.catalog.is_in_process(name)
        return "" if is_other else last

    def asks_about_group(self, call: m.Call, scope: Environment) -> bool:
        """Return whether a call of a library asks for a rank or for the number of processes."""
        return self.catalog.is_any(_GROUP, self.resolver.qualify(call.function, scope))
