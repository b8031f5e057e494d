"""What the main process makes on the disk of its node, and processes of other nodes use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fsrace_lint.project.model import ASKING, Reach
from fsrace_lint.project.processes import MAIN, Runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.project.model import Site
    from fsrace_lint.project.modules import LinkedFunction
    from fsrace_lint.project.sequences import Sequences, Step
    from fsrace_lint.project.sites import Sites

_DEPTH_OF_DISKS: Final = 2
"""How many components the path of a disk has: `/tmp`."""


@dataclass(frozen=True, slots=True, eq=False)
class Absence:
    """A path that one process of the job makes, and that others use where it is not.

    `site` is the act of the one, `use` that of the others. `is_first` says that the
    others do the same as `site` after it: all of those of another node do at once.
    """

    site: Site
    use: Site
    is_first: bool = False


class Elsewhere:
    """Finds what is missing on all nodes but the first."""

    def __init__(self, sites: Sites, sequences: Sequences) -> None:
        """Prepare for a project."""
        self.sites = sites
        self.sequences = sequences
        self.storage = sites.storage
        self.propagation = sites.propagation

    def of(self, function: LinkedFunction) -> Iterator[Absence]:
        """Give what a function makes on one node and uses on all, in the order of the code."""
        steps = self.sequences.of(function)
        for position, step in enumerate(steps):
            if step.act is None or step.act.op in ASKING or step.event is not step.origin:
                continue
            site = self.sites.of_step(step)
            if site is None or site.reach is not Reach.NODE or site.path is None:
                continue
            if site.first == "global" and site.runs is not Runs.ONE and self._is_said(site):
                yield Absence(site, site, is_first=True)
            elif site.runs is Runs.ONE and (self._is_said(site) or not self._is_one_node(function)):
                use = self._use(site, steps[position + 1 :])
                if use is not None and not self._is_made_by_others(site, steps):
                    yield Absence(site, use)

    def _use(self, site: Site, after: tuple[Step, ...]) -> Site | None:
        """Find where other processes read or list what a site makes."""
        for step in after:
            if step.act is None or step.act.op not in ASKING - {"probe"} or not self._are_others(step):
                continue
            use = self.sites.of_step(step)
            if use is not None and _needs(use, site):
                return use
        return None

    def _is_made_by_others(self, site: Site, steps: tuple[Step, ...]) -> bool:
        """Tell whether other processes make the same path, each node its own."""
        made = (step for step in steps if step.act is not None and step.act.op not in ASKING)
        return any(
            self._are_others(step)
            and step.path is not None
            and site.path is not None
            and step.path.is_within(site.path)
            for step in made
        )

    def _are_others(self, step: Step) -> bool:
        context = self.propagation.context(step.event.function)
        return bool(step.processes & context.processes & ~MAIN)

    def _is_said(self, site: Site) -> bool:
        """Tell whether the settings say that each node has the path for itself."""
        named = self.storage.named(site.path, site.spelled)
        return self.storage.filesystem == "local" if named is None else not named

    def _is_one_node(self, function: LinkedFunction) -> bool:
        """Tell whether the processes of a function are started by one that runs on the same node."""
        above = self.propagation.upward(function, self.propagation.edges)
        return any(edge.starts_several for caller in above for edge in self.propagation.edges(caller))


def _needs(use: Site, site: Site) -> bool:
    """Tell whether a use is of what a site makes, or of the folder in which it does, but for a whole disk."""
    if use.path is None or site.path is None:
        return False
    folder = len(site.path.components) - 1
    is_folder = site.path.is_within(use.path) and len(use.path.components) == folder > _DEPTH_OF_DISKS
    return use.path.is_within(site.path) or is_folder
