"""What another state of a project touches of what was found by following functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fsrace_lint.engine.aligning import aligned
from fsrace_lint.engine.dependencies import bits_of
from fsrace_lint.engine.name_index import NO_NAMES, differing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fsrace_lint.analysis.callgraph.function_flows import FunctionFlows
    from fsrace_lint.analysis.program.imports import ModuleTable
    from fsrace_lint.analysis.program.modules import Module
    from fsrace_lint.engine.aligning import Alignment
    from fsrace_lint.engine.dependencies import Asked, Searches

_MOST: Final = 40
"""Where more files are others, everything is found anew."""


class Snapshot:
    """A state of a project of which functions were followed."""

    def __init__(self, flows: FunctionFlows, searches: Searches) -> None:
        """Take what a linker has linked, and what it has searched all files for."""
        self.modules = flows.table.modules
        """The files that were linked."""
        self.searches = searches
        self._links = _targets(flows.also)
        self._looked_at = flows.looked_at

    def aligned(self, modules: Iterable[Module]) -> Alignment:
        """Find out where the files stood, and where they stand in another state."""
        return aligned([each.relative for each in self.modules], [each.relative for each in modules])

    def touched(self, flows: FunctionFlows) -> int | None:
        """Give the files of which something else may be found in another state.

        Args:
            flows: Has linked that; the files that have not changed are the same objects.

        Returns:
            The bits of the files, by their positions in this state, or None where it may be anything.
        """
        change = _Change(self, flows)
        if change.size > _MOST or self._links != _targets(flows.also) or change.is_asked_for:
            return None
        touched = 0
        for then, now in change.changed:
            touched |= bits_of(then, outline=self.modules[then].outline != flows.table.modules[now].outline)
        for then in change.outlined():
            touched |= bits_of(then, outline=True)
        for then in change.calling(self._looked_at):
            touched |= bits_of(then, outline=False)
        return touched


class _Change:
    """How a state of a project differs from one that was followed."""

    def __init__(self, before: Snapshot, flows: FunctionFlows) -> None:
        self._before, self._linker, self._modules = before, flows, flows.table.modules
        self._kept, self._gone, new = before.aligned(self._modules)
        self.changed = [
            (then, now) for then, now in self._kept if before.modules[then] is not self._modules[now]
        ]
        self.size = len(self.changed) + len(self._gone) + len(new)
        self._added = [self._modules[now] for now in new]

    @property
    def is_asked_for(self) -> bool:
        """Whether a search through all files may come out otherwise, and nobody knows for whom."""
        return bool(self._differing("classes")) or any(map(self._was_imported, self._named_anew()))

    def _named_anew(self) -> Iterator[Module]:
        """Give the files that answer to a name, and did not; in a package, files answer to more names."""
        yield from self._added
        modules = self._before.modules
        others = (*self._added, *(modules[then] for then in self._gone))
        packages = tuple(f"{each.name}." for each in others if each.is_package)
        yield from (modules[then] for then, _ in self._kept if modules[then].name.startswith(packages))

    def _was_imported(self, module: Module) -> bool:
        """Tell whether a module was sought by a name that may mean this one."""
        parts, sought = module.name.split("."), self._before.searches.modules
        return any(".".join(parts[start:]) in sought for start in range(len(parts)))

    def _differing(self, field: Asked) -> set[str]:
        """Name what was sought in a field of the heads, and is in others now.

        Who found something in a file that is gone depends on that file.
        """
        before = self._before.modules
        found: set[str] = set()
        for then, now in self.changed:
            found |= differing(field, before[then].head, self._modules[now].head)
        for each in self._added:
            found |= differing(field, NO_NAMES, each.head)
        return found & self._before.searches.heads[field]

    def outlined(self) -> Iterator[int]:
        """Give the positions of files that are gone, or whose classes may have other heirs."""
        yield from self._gone
        heirs = self._differing("bases") | self._differing("renamed")
        if heirs:
            table = self._linker.table
            having = {
                place for name in _originals(heirs, table) for place in table.heads.having("classes", name)
            }
            yield from (then for then, now in self._kept if now in having)

    def calling(self, before: tuple[frozenset[str], frozenset[str]]) -> Iterator[int]:
        """Give the positions of files that call what may do something to the flow, and could not before.

        Args:
            before: The names of the calls that were looked at.

        Yields:
            The positions.
        """
        others = (*self._added, *(self._modules[now] for _, now in self.changed))
        names, giving = self._linker.newly_looked_at(before, others)
        heads, modules = self._linker.table.heads, self._modules
        calling = {place for name in names for place in heads.having("mentions", name)}
        calling = {place for place in calling if modules[place].calls(names)}
        if giving:
            unnamed = heads.having("mentions", "")
            calling.update(place for place in unnamed if modules[place].calls(giving, results=True))
        yield from (then for then, now in self._kept if now in calling)


def _originals(names: Iterable[str], table: ModuleTable) -> set[str]:
    """Give names, and those of which imports make them."""
    renamed_from: dict[str, list[str]] = {}
    for name, others in table.renamed.items():
        for other in others:
            renamed_from.setdefault(other, []).append(name)
    found, waiting = {*names}, [*names]
    while waiting:
        new = {*renamed_from.get(waiting.pop(), ())} - found
        found |= new
        waiting += new
    return found


def _targets(links: Mapping[str, Module | None]) -> dict[str, str]:
    """Give the files that links lead to, by the paths of the links."""
    return {link: module.relative for link, module in links.items() if module is not None}
