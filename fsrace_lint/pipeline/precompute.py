"""What is found of a project while nobody waits for it, for the checks that come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.callgraph.tracked import TrackedLinker
from fsrace_lint.engine.parallel.progress import CancelledError
from fsrace_lint.syntax import recursion_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fsrace_lint.analysis.callgraph.retained import Retained
    from fsrace_lint.analysis.program.modules import Module
    from fsrace_lint.analysis.queries.project import Project
    from fsrace_lint.pipeline.files import ProjectFile


class Ahead:
    """Keeps what does not change from one state of a project to the next: a process that stays hands it on.

    Of the runs that share it, nothing may be asked any more but of the last one that was linked.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.is_done = False
        """Whether all functions were followed since the project was linked."""
        self._retained: Retained | None = None
        self._linker: TrackedLinker | None = None
        """What was interrupted, to go on with it."""
        self._project: Project | None = None
        """Of which project."""
        self._modules: dict[str, tuple[ProjectFile, Module | None]] = {}

    @property
    def retained(self) -> Retained | None:
        """What was found by following functions."""
        if self._linker is not None:
            self._retained = self._linker.retained
        return self._retained

    def linked_before(self, file: ProjectFile) -> tuple[Module | None] | None:
        """Give the module that a file was linked as, or None for one that is new, or has changed."""
        known = self._modules.get(file.relative)
        return None if known is None or known[0] is not file else (known[1],)

    def is_linked(self, files: Mapping[str, ProjectFile], modules: Mapping[str, Module | None]) -> None:
        """Hear that a new state of the project was linked, and as which modules its files were."""
        self._retained, self._linker, self._project = self.retained, None, None
        before, self.is_done = self._modules, False
        self._modules = {relative: (files[relative], module) for relative, module in modules.items()}
        for relative, (_, old) in before.items():
            if old is not None and old is not modules.get(relative):
                old.family = None  # if nobody looks for cycles in it any more, it keeps nothing else

    def follow(self, project: Project, pulse: Callable[[], None]) -> int:
        """Follow all functions of a project, but for those of which enough is known.

        Args:
            project: The last one that was linked.
            pulse: Called before a function is followed; an EndedError ends the work.

        Returns:
            How many functions are known that were not before, once all are.
        """
        if self.is_done or self._lacks_a_file(project.flows.table.modules):
            return 0
        if self._linker is None or self._project is not project:
            self._linker, self._project = TrackedLinker(project.flows, self._retained), project
        before = 0 if self._retained is None else len(self._retained.flows)
        self._linker.resolver.relate()
        try:
            with recursion_limit.frames(recursion_limit.MEANING):
                self._linker.follow_all(pulse)
        except CancelledError:
            return 0
        finally:
            project.flows.resolver.relate()
        self._retained, self._linker, self._project = self._linker.retained, None, None
        self.is_done = True
        project.flows.remember(self._retained)
        return len(self._retained.flows) - before

    def _lacks_a_file(self, modules: tuple[Module, ...]) -> bool:
        """Tell whether a file that was followed cannot be parsed now: soon it can again."""
        now = {module.relative for module in modules}
        known = () if self._retained is None else self._retained.state.modules
        return any(each.relative not in now and each.relative in self._modules for each in known)
