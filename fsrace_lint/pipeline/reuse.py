"""What the daemon and the language server keep from one state of a project to the next."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from fsrace_lint.engine.dependencies import Dependencies
from fsrace_lint.engine.parallel.progress import CancelledError
from fsrace_lint.syntax import recursion_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.pipeline.files import ProjectFile
    from fsrace_lint.program.modules import Module


class Reuse:
    """The modules of a project, and the results of interpreting their functions.

    Only the state that was linked last may be queried, among the states that share this object.
    """

    def __init__(self) -> None:
        """Start with nothing known."""
        self.dependencies = Dependencies()
        """Records what the results depend on."""
        self.is_done = False
        """Whether all functions of the project were interpreted."""
        self._flows: FunctionFlows | None = None
        self._modules: dict[str, tuple[ProjectFile, Module | None]] = {}

    def linked_before(self, file: ProjectFile) -> tuple[Module | None] | None:
        """Return a tuple with the module of an unchanged file, or None if the file is new or changed."""
        known = self._modules.get(file.relative)
        return None if known is None or known[0] is not file else (known[1],)

    def restarted(self) -> Dependencies:
        """Return the recorder of dependencies, reset for a new state."""
        self.dependencies.restart()
        return self.dependencies

    def hand_on(
        self, files: Mapping[str, ProjectFile], modules: Mapping[str, Module | None], flows: FunctionFlows
    ) -> None:
        """Pass on to a new state of the project the results of the previous state that still hold.

        Args:
            files: The files of the new state.
            modules: The modules of the files. None for a file that does not parse.
            flows: Interprets the functions of the new state.
        """
        before, self.is_done = self._modules, False
        self._modules = {relative: (files[relative], module) for relative, module in modules.items()}
        if self._flows is not None:
            changed = self._flows.snapshot.changed_inputs(flows.snapshot, self.dependencies)
            if changed is not None:
                flows.known_flows.remember(*self._flows.known_flows.independent_of(changed))
        for relative, (_, old) in before.items():
            if old is not None and old is not modules.get(relative):
                old.family = None  # so an uncollected module keeps nothing else alive
        self._flows = flows

    def interpret_all(self, checkpoint: Callable[[], None]) -> int:
        """Interpret all functions of the project, except those that are nested too deeply.

        Args:
            checkpoint: Called before each function. A `CancelledError` stops the work, which can be resumed.

        Returns:
            The number of functions that were interpreted.
        """
        flows = self._flows
        if self.is_done or flows is None:
            return 0
        before = len(flows.known_flows)
        with contextlib.suppress(CancelledError), recursion_limit.frames(recursion_limit.MEANING):
            for module in flows.table.modules:
                for function in module.functions:
                    if flows.known_flows.known(function) is None:
                        checkpoint()
                        with contextlib.suppress(RecursionError):
                            flows.flow(function)
            self.is_done = True
            self.dependencies.forget()
        return len(flows.known_flows) - before
