"""Queries for the order of processes: who waits for whom, and who does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.project.queries.sites import SiteQueries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.catalog import Op
    from fsrace_lint.project.acts.vanishing import Vanishing
    from fsrace_lint.project.model import Misuse, Probe, Site, VainTest
    from fsrace_lint.project.order.divergence import Divergence
    from fsrace_lint.project.order.elsewhere import Absence
    from fsrace_lint.project.order.pauses import Pause
    from fsrace_lint.project.order.per_node import PerNodeAct
    from fsrace_lint.project.order.polls import Poll
    from fsrace_lint.project.order.unordered import Unordered


class OrderQueries(SiteQueries):
    """Which processes wait for each other, and which should."""

    def divergent(self) -> Iterator[Divergence]:
        """Give the collectives that some of the processes miss, file by file in the order of the code."""
        yield from self.each(self._divergences.of)

    def is_met_between(self, probe: Probe, site: Site) -> bool:
        """Tell whether processes meet after a test and before a site in one function."""
        steps = self._sequences.of(site.event.function)
        return any(step.meeting and probe.span < step.span < site.span for step in steps)

    def unordered(self) -> Iterator[Unordered]:
        """Give acts of one process and of others on one path that nothing orders."""
        yield from self.each(self._orders.of)

    def vanishing(self) -> Iterator[Vanishing]:
        """Give the reads of what was there, and what code of the project takes away."""
        yield from self.each(self._vanishings.of)

    def per_node(self) -> Iterator[PerNodeAct]:
        """Give what one process of each node does where nodes may share the path, file by file."""
        yield from self.each(self._per_node.of)

    def absences(self) -> Iterator[Absence]:
        """Give what one process makes on its node and those of others use, in the order of the code."""
        yield from self.each(self._elsewhere.of)

    def polls(self) -> Iterator[Poll]:
        """Give the waits for a path by looking again and again, file by file in the order of the code."""
        yield from self.each(self._polls.of)

    def pauses(self) -> Iterator[Pause]:
        """Give the sleeps on which the order of processes hangs, file by file in the order of the code."""
        yield from self.each(self._pauses.of)

    def before_the_group(self, *ops: Op) -> Iterator[VainTest]:
        """Give the sites that only the first process should reach, and all reach for want of a group."""
        for site in self.sites(*ops):
            vain = self._groups.vain_test(site)
            if vain is not None:
                yield vain

    def never_entered(self) -> Iterator[Misuse]:
        """Give the calls that make a context for several processes and drop it; `subject` is what it does."""
        yield from self.each(self._misuses.never_entered)

    def eager(self) -> Iterator[Misuse]:
        """Give the calls that hand the result of a call to what runs a function in one process."""
        yield from self.each(self._misuses.eager)
