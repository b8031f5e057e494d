"""What was found by following functions, for a later state of the project: most of it still holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.project.dependencies import UNSETTLED, bits_of
from fsrace_lint.project.names.heads import differing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsrace_lint.project.callers.linker import Linker
    from fsrace_lint.project.dependencies import Dependencies
    from fsrace_lint.project.flow.states import Flow
    from fsrace_lint.project.names.modules import LinkedFunction, Module

_MOST: Final = 40
"""Where more files were changed, everything is found anew."""


class Retained:
    """The flows of functions, with the files that each depends on."""

    def __init__(
        self, linker: Linker, files: Mapping[LinkedFunction, int], dependencies: Dependencies
    ) -> None:
        """Take what a linker has found.

        Args:
            linker: It has found the flows.
            files: The files that each of them depends on, as `Dependencies` says it.
            dependencies: The names for which all files were searched.
        """
        self.modules = linker.table.modules
        """The files that were linked."""
        settled = ((function, flow) for function, flow in linker.flows if not files[function] & UNSETTLED)
        self.flows: dict[LinkedFunction, Flow] = dict(settled)
        self.files = {function: files[function] for function in self.flows}
        self._by_files: dict[int, list[LinkedFunction]] = {}
        for function, all_ in self.files.items():
            self._by_files.setdefault(all_, []).append(function)
        self.asked = dependencies.asked
        self._links = _targets(linker.also)
        self._filters = linker.filters

    def holding(self, linker: Linker) -> dict[LinkedFunction, Flow]:
        """Give the flows that hold for another state of the project.

        Args:
            linker: Has linked it; the files that have not changed are the same objects.

        Returns:
            The flows of functions in such files.
        """
        modules = linker.table.modules
        if [each.relative for each in modules] != [each.relative for each in self.modules]:
            return {}
        if _targets(linker.also) != self._links:
            return {}
        pairs = zip(self.modules, modules, strict=True)
        changed = [pair for pair in pairs if pair[0] is not pair[1]]
        if len(changed) > _MOST or any(self._was_asked_for(old, new) for old, new in changed):
            return {}
        if not changed:
            return self.flows
        touched = 0
        for old, new in changed:
            touched |= bits_of(new.position, outline=old.outline != new.outline)
        for name in self._let_through(linker):
            for place in linker.table.heads.having("mentions", name):
                touched |= bits_of(place, outline=True)
        holding = dict(self.flows)
        for files, functions in self._by_files.items():
            if files & touched:
                for function in functions:
                    del holding[function]
        return holding

    def _was_asked_for(self, old: Module, new: Module) -> bool:
        """Tell whether a search through all files may come out otherwise, as one of them has changed."""
        asked = self.asked.items()
        return any(not names.isdisjoint(differing(field, old.head, new.head)) for field, names in asked)

    def _let_through(self, linker: Linker) -> set[str]:
        """Name what calls are looked at now for what they do to the flow, and were not before."""
        pairs = zip(self._filters, linker.filters, strict=True)
        return {name for old, new in pairs if new is not old for name in new - old}


def _targets(links: Mapping[str, Module | None]) -> dict[str, str]:
    """Give the files that links lead to, by the paths of the links."""
    return {link: module.relative for link, module in links.items() if module is not None}
