"""Functions followed ahead, with the files that what is found depends on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from fsrace_lint.analysis.callgraph.function_flows import DEEPEST, FunctionFlows
from fsrace_lint.analysis.callgraph.retained import Retained
from fsrace_lint.analysis.values.tracked import TrackedResolver, TrackedTable
from fsrace_lint.engine.dependencies import Dependencies
from fsrace_lint.engine.query_cache import TrackedQueryCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fsrace_lint.analysis.callgraph.function_flows import KnownFlows
    from fsrace_lint.analysis.dataflow.abstract_state import FlowResult
    from fsrace_lint.analysis.program.modules import LinkedFunction, Module
    from fsrace_lint.engine.name_index import NameIndex

Answer = TypeVar("Answer")


class TrackedLinker(FunctionFlows):
    """Follows functions as the other does, and notes which files they lead to."""

    _flows: TrackedQueryCache[LinkedFunction, FlowResult | None]

    def __init__(self, flows: FunctionFlows, retained: Retained | None) -> None:
        """Link the same modules as another one.

        Args:
            flows: The other one.
            retained: What is known of an earlier state of the project.
        """
        self.dependencies = Dependencies()
        modules, heads = flows.table.modules, flows.table.heads
        how: dict[str, Any] = {"asks_few": True, "heads": heads, "retained": retained}
        super().__init__(modules, flows.catalog, flows.also, **how)

    def _table(
        self, modules: Iterable[Module], also: Mapping[str, Module | None], heads: NameIndex | None
    ) -> TrackedTable:
        return TrackedTable(modules, also, self.catalog.libraries, heads, self.dependencies)

    def _resolver(self) -> TrackedResolver:
        return TrackedResolver(self.table, self.catalog, self, self.cycles, self.dependencies)

    def _memo(self, unknown: Answer) -> TrackedQueryCache[LinkedFunction, Answer]:
        return TrackedQueryCache(unknown, DEEPEST, self.cycles, self.dependencies)

    def remember(self, retained: KnownFlows) -> None:
        """Take what is known of an earlier state of the project, with the files that it depends on."""
        assert isinstance(retained, Retained)  # noqa: S101  # nobody else makes one
        holding = retained.holding(self)
        if holding:
            self._flows.files.update(retained.files_of(holding, self))
            self.dependencies.searches = retained.state.searches
        self._flows.remember(holding)

    def interpret(self, function: LinkedFunction) -> FlowResult:
        """Follow a function, and note its file."""
        self.dependencies.on(function.module.position)
        return super().interpret(function)

    def follow_all(self, pulse: Callable[[], None]) -> None:
        """Follow all functions, but for those that are nested too deeply.

        Args:
            pulse: Called before a function is followed.

        Raises:
            Exception: What `pulse` has raised; what was found until then is known; this can go on.
        """
        self._pulse = pulse
        for module in self.table.modules:
            for function in module.functions:
                with contextlib.suppress(RecursionError):
                    self.flow(function)

    @property
    def retained(self) -> Retained:
        """What was found so far."""
        return Retained(self, self._flows.files, self.dependencies)
