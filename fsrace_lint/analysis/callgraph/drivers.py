"""Drivers: functions that start the processes of a job, or send work to them, and run in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.dataflow.process_set import SYNCHRONIZING, TOP
from fsrace_lint.catalog.lexicon import meaning
from fsrace_lint.engine.query import query
from fsrace_lint.program.symbols import as_function, qualified_name
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.ast_names import last_name
from fsrace_lint.syntax.traversal import all_in, evaluated, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.program.modules import LinkedFunction

_DEEPEST: Final = 1
"""The maximum number of calls from a driver to the call that starts processes."""


class Drivers:
    """Finds drivers: the function that calls `mp.spawn()`, or the program that sends tasks to a cluster."""

    def __init__(self, flows: FunctionFlows) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.flows, self.catalog = flows, flows.catalog

    def is_driver(self, function: LinkedFunction) -> bool:
        """Return whether a function starts the ranks of a job or sends work to processes.

        A function that checks ranks or synchronizes them is none, because the ranks can start processes too.
        """
        return self._drives(function, 0)

    @query(provisional=False)
    def _drives(self, function: LinkedFunction, depth: int) -> bool:
        flow = self.flows.flow(function)
        if flow is None or any(test.is_for_rank for test in flow.rank_tests):
            return False
        drives = False
        for name, callee, by_all in self._calls(function):
            if self.catalog.is_any(SYNCHRONIZING, name):
                return False
            inner = callee is not None and depth < _DEEPEST and self._drives(callee, depth + 1)
            drives = drives or (by_all and (inner or self._starts_job(name)))
        return drives or self._launches(function)

    def _starts_job(self, name: str) -> bool:
        """Return whether a call starts the ranks of a job, or sends work to other processes."""
        spawn = self.catalog.find("spawn", name)
        starts = spawn is not None and (spawn.passes_rank or spawn.starts_job)
        return starts or self.catalog.find("driver", name) is not None

    def _launches(self, function: LinkedFunction) -> bool:
        """Return whether a function runs a command that begins with a launcher, such as `torchrun`."""
        if not any(map(_names_launcher, _texts(function))):
            return False
        called = [name for name, _, _ in self._calls(function)]
        for _, callee, _ in self._calls(function):
            called += [name for name, _, _ in self._calls(callee)] if callee is not None else []
        return any(self.catalog.find("program", name) is not None for name in called)

    def _calls(self, function: LinkedFunction) -> Iterator[tuple[str, LinkedFunction | None, bool]]:
        """Yield the names of the calls in a function, their callees, and whether all processes make them."""
        for call_site in self.flows.call_sites(function):
            entity = self.flows.resolver.symbol(call_site.call.function, call_site.state.scope)
            name = qualified_name(entity) or f"*.{last_name(call_site.call.function)}"
            yield name, as_function(entity), call_site.state.processes == TOP


def _texts(function: LinkedFunction) -> Iterator[str]:
    """Yield the strings in the code of a function."""
    for statement in all_in(function.facts.body):
        for expr in evaluated(statement):
            for part in within(expr):
                if isinstance(part, m.Constant) and isinstance(part.value, str):
                    yield part.value


def _names_launcher(text: str) -> bool:
    return not meaning("launcher").isdisjoint(text.split())
