"""What is found of a project while nobody waits for it, for the checks that come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint import depth
from fsrace_lint.pipeline.observer import EndedError
from fsrace_lint.project.callers.tracked import TrackedLinker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fsrace_lint.pipeline.files import File
    from fsrace_lint.pipeline.run import Run
    from fsrace_lint.project.callers.retained import Retained
    from fsrace_lint.project.names.modules import Module


class Ahead:
    """Keeps what does not change from one state of a project to the next: a process that stays hands it on.

    Of the runs that share it, nothing may be asked any more but of the last one that was linked.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.retained: Retained | None = None
        """What was found by following functions."""
        self.is_done = False
        """Whether all functions were followed since the project was linked."""
        self._modules: dict[str, tuple[File, Module | None]] = {}

    def linked_before(self, file: File) -> tuple[Module | None] | None:
        """Give the module that a file was linked as, or None for one that is new, or has changed."""
        known = self._modules.get(file.relative)
        return None if known is None or known[0] is not file else (known[1],)

    def is_linked(self, files: Mapping[str, File], modules: Mapping[str, Module | None]) -> None:
        """Hear that a new state of the project was linked, and as which modules its files were."""
        before, self.is_done = self._modules, False
        self._modules = {relative: (files[relative], module) for relative, module in modules.items()}
        for relative, (_, old) in before.items():
            if old is not None and old is not modules.get(relative):
                old.family = None  # if nobody looks for cycles in it any more, it keeps nothing else

    def follow(self, run: Run, pulse: Callable[[], None]) -> int:
        """Follow all functions of a project, but for those of which enough is known.

        Args:
            run: The last run that was linked.
            pulse: Called before a function is followed; an EndedError ends the work.

        Returns:
            How many functions are known that were not before.
        """
        _, project = run.link()
        if self.is_done or self._lacks_a_file(project.linker.table.modules):
            return 0
        before = 0 if self.retained is None else len(self.retained.flows)
        linker = TrackedLinker(project.linker, pulse, self.retained)
        self.is_done = True
        try:
            with depth.frames(depth.MEANING):
                linker.follow_all()
        except EndedError:
            self.is_done = False
        finally:
            project.linker.resolver.relate()
        self.retained = linker.retained
        project.linker.remember(self.retained)
        return len(self.retained.flows) - before

    def _lacks_a_file(self, modules: tuple[Module, ...]) -> bool:
        """Tell whether a file that was followed cannot be parsed now: soon it can again."""
        now = {module.relative for module in modules}
        known = () if self.retained is None else self.retained.modules
        return any(each.relative not in now and each.relative in self._modules for each in known)
