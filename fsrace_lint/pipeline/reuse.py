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
    """Keeps the modules of a project, and what was found by interpreting their functions.

    Of the states that share it, nothing may be asked any more but of the last one that was linked.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.dependencies = Dependencies()
        """Notes what results depend on."""
        self.is_done = False
        """Whether all functions of the project were interpreted."""
        self._flows: FunctionFlows | None = None
        self._modules: dict[str, tuple[ProjectFile, Module | None]] = {}

    def linked_before(self, file: ProjectFile) -> tuple[Module | None] | None:
        """Give the module that a file was linked as, or None for one that is new, or has changed."""
        known = self._modules.get(file.relative)
        return None if known is None or known[0] is not file else (known[1],)

    def restarted(self) -> Dependencies:
        """Return what notes the inputs of a new state's results; nothing is under way of an earlier one."""
        self.dependencies.restart()
        return self.dependencies

    def hand_on(
        self, files: Mapping[str, ProjectFile], modules: Mapping[str, Module | None], flows: FunctionFlows
    ) -> None:
        """Give a new state of the project what still holds of the one before.

        Args:
            files: Its files.
            modules: The modules that they were linked as; None for what does not parse.
            flows: Interprets their functions.
        """
        before, self.is_done = self._modules, False
        self._modules = {relative: (files[relative], module) for relative, module in modules.items()}
        if self._flows is not None:
            changed = self._flows.snapshot.changed_inputs(flows.snapshot, self.dependencies)
            if changed is not None:
                flows.known_flows.remember(*self._flows.known_flows.independent_of(changed))
        for relative, (_, old) in before.items():
            if old is not None and old is not modules.get(relative):
                old.family = None  # if nobody looks for cycles in it any more, it keeps nothing else
        self._flows = flows

    def interpret_all(self, checkpoint: Callable[[], None]) -> int:
        """Interpret all functions of the project, but for those that are nested too deeply.

        Args:
            checkpoint: Called before each function that is interpreted; a CancelledError ends the work,
                which can go on later.

        Returns:
            How many were interpreted.
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
