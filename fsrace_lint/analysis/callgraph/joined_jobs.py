"""Programs that can join a job, as opposed to those that only have an option for the rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.engine.query import lazy, query
from fsrace_lint.program.symbols import package_of
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import all_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.catalog.entries import Launch
    from fsrace_lint.program.modules import LinkedFunction, Module

_ENVIRONMENT: Final = frozenset({"environ", "getenv"})


class JoinedJobs:
    """Finds the files whose code, or the code that they import, joins a job or gets a rank."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project; nothing is computed yet."""
        self._flows = flows
        self._catalog = flows.catalog
        self._table = flows.table

    @query
    def may_join(self, module: Module) -> bool:
        """Return whether a file or a file that it imports may join a job, or get the rank in one."""
        found, waiting = {module}, [module]
        while waiting:
            here = waiting.pop()
            if here in self._joining:
                return True
            new = [each for each in self._imported(here) if each not in found]
            found.update(new)
            waiting += new
        return False

    def _imported(self, module: Module) -> Iterator[Module]:
        for row in module.facts.imports:
            name = self._table.relative(row, module) if row.level else row.module
            for chain in (name, f"{name}.{row.name}"):
                each = self._table.find(chain, module)
                if each is not None:
                    yield each

    @lazy
    def _joining(self) -> frozenset[Module]:
        """The files that join a job or get a rank themselves."""
        names = {*self._catalog.last_names["rank"], *(name.rpartition(".")[2] for name in self._launching)}
        using = self._flows.relevance.using(self._flows.relevance.library_names(names) - {""})
        joining = (function for function in using if any(map(self._joins, self._flows.call_sites(function))))
        reading = filter(self._reads_rank, self._flows.relevance.using(_ENVIRONMENT))
        return frozenset(function.module for function in (*joining, *reading))

    def needs_group(self, call_site: CallSite) -> bool:
        """Return whether a call needs the process group of its library, and does not create it."""
        name = self._name(call_site)
        return package_of(name) in self._grouped and name not in self._launching

    @lazy
    def _launches(self) -> dict[str, Launch]:
        return {name: self._catalog.exact("launch", name) for name in self._catalog.names("launch")}

    @lazy
    def _grouped(self) -> frozenset[str]:
        """The packages with a call that creates a process group, which their other calls need."""
        return frozenset(package_of(name) for name, entry in self._launches.items() if entry.creates_group)

    @lazy
    def _launching(self) -> frozenset[str]:
        """The calls that set up processes, without those that need the process group of their library."""
        return frozenset(
            name
            for name, entry in self._launches.items()
            if entry.creates_group or not entry.certain or package_of(name) not in self._grouped
        )

    def _joins(self, call_site: CallSite) -> bool:
        name = self._name(call_site)
        return name in self._launching or self._catalog.find("rank", name) is not None

    def _name(self, call_site: CallSite) -> str:
        called = call_site.call.function
        return self._flows.resolver.qualify(called, call_site.state.scope) or f"*.{last_name(called)}"

    def _reads_rank(self, function: LinkedFunction) -> bool:
        """Return whether a function names an environment variable that a launcher sets."""
        statements = all_in(function.facts.body)
        values = (part for each in statements for expr in evaluated(each) for part in within(expr))
        names = (part.value for part in values if isinstance(part, m.Constant))
        return any(isinstance(name, str) and self._catalog.exact("environment", name) for name in names)
