"""The programs in which a framework calls the hooks of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.engine.query import query

if TYPE_CHECKING:
    from fsrace_lint.analysis.callgraph.concurrency_markers import ConcurrencyMarkers
    from fsrace_lint.program.modules import LinkedFunction, Module
    from fsrace_lint.program.programs import Programs


class HookPrograms:
    """Determines whether one process runs the programs that use a hook.

    A framework calls a hook in as many processes as the program has.
    """

    def __init__(self, markers: ConcurrencyMarkers, programs: Programs) -> None:
        """Initialize for a project; nothing is computed yet."""
        self.markers = markers
        self.programs = programs
        self.resolver = markers.flows.resolver

    def is_in_one(self, function: LinkedFunction) -> bool:
        """Return whether a framework calls a function only in programs that one process runs.

        The workers of a data loader exist in such a program too.
        """
        marker = self.markers.hooked(function)
        return marker is not None and marker.role == "rank" and self._is_used_by_one(function.module)

    @query
    def _is_used_by_one(self, module: Module) -> bool:
        """Return whether commands start programs that import a module, and only in one process.

        No file on the way may check ranks or start processes.
        """
        users = (module, *self.importers(module))
        launches = [launch for user in users for launch in self.programs.launches_of(user.code)]
        is_started_alone = bool(launches) and not any(launch.several for launch in launches)
        return is_started_alone and not any(map(self.markers.is_distributed, users))

    @query
    def importers(self, module: Module) -> tuple[Module, ...]:
        """Return the files that import a module, directly or indirectly, nearest first."""
        found, waiting = {module: None}, [module]
        while waiting:
            for importer in self.resolver.importers(waiting.pop(0)):
                if importer not in found:
                    found[importer] = None
                    waiting.append(importer)
        return tuple(found)[1:]
