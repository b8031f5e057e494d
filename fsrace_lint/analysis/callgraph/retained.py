"""What was found by following functions, for a later state of the project: most of it still holds."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from fsrace_lint.analysis.callgraph.touched import Snapshot
from fsrace_lint.engine.dependencies import UNSETTLED, moved

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.dataflow.abstract_state import FlowResult
    from fsrace_lint.analysis.program.modules import LinkedFunction
    from fsrace_lint.engine.dependencies import Dependencies


class Retained:
    """The flows of functions, with the files that each depends on."""

    def __init__(
        self, flows: FunctionFlows, files: Mapping[LinkedFunction, int], dependencies: Dependencies
    ) -> None:
        """Take what a linker has found.

        Args:
            flows: It has found the flows.
            files: The files that each of them depends on, as `Dependencies` says it.
            dependencies: What all files were searched for.
        """
        self.state = Snapshot(flows, dependencies.searches)
        """The state of the project."""
        settled = ((function, flow) for function, flow in flows.flows if not files[function] & UNSETTLED)
        self.flows: dict[LinkedFunction, FlowResult | None] = dict(settled)
        self._files = {function: files[function] for function in self.flows}
        self._by_files: dict[int, list[LinkedFunction]] = {}
        for function, all_ in self._files.items():
            self._by_files.setdefault(all_, []).append(function)

    def holding(self, flows: FunctionFlows) -> dict[LinkedFunction, FlowResult | None]:
        """Give the flows that hold for another state of the project.

        Args:
            flows: Has linked it; the files that have not changed are the same objects.

        Returns:
            The flows of functions in such files.
        """
        touched = self.state.touched(flows)
        if touched is None:
            return {}
        holding = dict(self.flows)
        if touched:
            for files, functions in self._by_files.items():
                if files & touched:
                    for function in functions:
                        del holding[function]
        return holding

    def files_of(
        self, functions: Iterable[LinkedFunction], flows: FunctionFlows
    ) -> dict[LinkedFunction, int]:
        """Give the files that flows depend on, by their positions in another state of the project.

        Args:
            functions: The functions whose flows hold there.
            flows: Has linked it.

        Returns:
            The bits of the files, by the functions.
        """
        now = functools.cache(moved(self.state.aligned(flows.table.modules).kept))
        return {function: now(self._files[function]) for function in functions}
