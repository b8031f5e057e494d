"""The inputs that differ between two states of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.engine.dependencies import bit_of_name
from fsrace_lint.program.name_index import NO_NAMES, differing
from fsrace_lint.syntax.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fsrace_lint.engine.dependencies import Dependencies
    from fsrace_lint.program.module_table import ModuleTable
    from fsrace_lint.program.modules import Module

_MOST: Final = 40
"""The maximum number of changed files; beyond it, everything is recomputed."""
_SEARCHED: Final = ("classes", "bases", "renamed")


class Snapshot(Record, frozen=True):
    """The inputs of the results for one state of a project."""

    table: ModuleTable
    """The files. Unchanged files are the same objects in a later state."""
    links: Mapping[str, str]
    """The targets of symbolic links, by the paths of the links."""
    controlling: frozenset[str]
    """The names of calls that may end the process, leave the code, or acquire or release a lock."""

    def changed_inputs(self, later: Snapshot, dependencies: Dependencies) -> int | None:
        """Return the inputs that differ in a later state.

        Args:
            later: The later state.
            dependencies: Maps inputs to bits.

        Returns:
            The inputs as bits, or None if any input may differ.
        """
        before = {module.relative: module for module in self.table.modules}
        now = {module.relative: module for module in later.table.modules}
        changed = [each for each in before.keys() & now.keys() if before[each] is not now[each]]
        gone, new = before.keys() - now.keys(), now.keys() - before.keys()
        if len(changed) + len(gone) + len(new) > _MOST or self.links != later.links:
            return None
        inputs = 0
        for each in changed:
            interface = before[each].interface != now[each].interface
            inputs |= dependencies.bits_of_file(each, interface=interface)
        for each in (*gone, *new):
            inputs |= dependencies.bits_of_file(each, interface=True)
        for each in (*changed, *new):  # results from a deleted file depend on that file
            old = before[each].head if each in before else NO_NAMES
            for field in _SEARCHED:
                for name in differing(field, old, now[each].head):
                    inputs |= bit_of_name(field, name)
        moved = (*(before[each] for each in gone), *(now[each] for each in new))
        for name in _answered_to(now, new, moved):
            inputs |= bit_of_name("module", name)
        for module in _calling(self.controlling ^ later.controlling, later.table):
            inputs |= dependencies.bits_of_file(module.relative, interface=False)
        return inputs


def _calling(names: frozenset[str], table: ModuleTable) -> Iterator[Module]:
    """Return the files whose code calls one of some names."""
    places = {place for name in names for place in table.heads.having("referenced_names", name)}
    return (table.modules[place] for place in places if table.modules[place].calls(names))


def _answered_to(now: Mapping[str, Module], new: Iterable[str], moved: Iterable[Module]) -> Iterator[str]:
    """Yield the module names of new files, and of files that joined or left a package."""
    packages = tuple(f"{each.name}." for each in moved if each.is_package)
    inside = (module for module in now.values() if packages and module.name.startswith(packages))
    for module in (*(now[each] for each in new), *inside):
        parts = module.name.split(".")
        yield from (".".join(parts[start:]) for start in range(len(parts)))
