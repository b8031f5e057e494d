"""Finds functions in files that nothing in the repository runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.callgraph.concurrency import Doubt
from fsrace_lint.catalog.lexicon import meaning
from fsrace_lint.engine.query import query

if TYPE_CHECKING:
    from fsrace_lint.analysis.callgraph.entry_states import EntryStates
    from fsrace_lint.program.modules import LinkedFunction, Module
    from fsrace_lint.program.programs import Programs


class UnusedFiles:
    """Finds functions in files that no other file names, in repositories that say how they are started."""

    def __init__(self, entry_states: EntryStates, programs: Programs) -> None:
        """Initialize for a project."""
        self.entry_states = entry_states
        self.programs = programs

    @query
    def doubt(self, function: LinkedFunction) -> Doubt:
        """Return whether it is in doubt that anything runs a function.

        The code of a module runs what it calls, other files can call a function on an unknown object, and a
        decorator can register a function or its class.
        """
        module = function.module
        if not self.is_unused(module):
            return Doubt.NONE
        above = self.entry_states.upward(function, self.entry_states.callers)
        if any(each.index == 0 or each.module is not module or _is_registered(each) for each in above):
            return Doubt.NONE
        is_loaded = self.entry_states.flows.table.is_mentioned_near(module, meaning("loading"))
        return Doubt.LOADED if is_loaded else Doubt.UNUSED

    @query
    def is_unused(self, module: Module) -> bool:
        """Return whether no other file names a file, and no command starts it."""
        is_run = module.facts.is_script or self.programs.launches_of(module.code)
        table = self.entry_states.flows.table
        return self.programs.is_told and not is_run and table.is_nameless(module)


def _is_registered(function: LinkedFunction) -> bool:
    return bool(function.facts.decorators or (function.owner is not None and function.owner.facts.decorators))
