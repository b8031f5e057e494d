"""Queries for the order of processes: who waits for whom, and who does not."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from fsrace_lint.analysis.accesses.model import ASKING, LOOKING
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.queries.accesses import AccessQueries, are_one_after_another

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.accesses.vanishing_files import DirectoryListing, VanishingFile
    from fsrace_lint.analysis.synchronization.model import Misuse, TestBeforeInit
    from fsrace_lint.analysis.synchronization.node_visibility import Absence
    from fsrace_lint.analysis.synchronization.per_node import PerNodeAccess
    from fsrace_lint.analysis.synchronization.polling import Poll
    from fsrace_lint.analysis.synchronization.rank_divergence import Divergence
    from fsrace_lint.analysis.synchronization.sleeps import Sleep
    from fsrace_lint.analysis.synchronization.unordered_pairs import UnorderedPair
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span


class OrderingQueries(AccessQueries):
    """Which processes wait for each other, and which should."""

    def divergent(self) -> Iterator[Divergence]:
        """Give the collectives that some of the processes miss, file by file in the order of the code."""
        yield from self.each_acting(self._divergences.of)

    def is_synchronized_between(self, probe: ExistenceCheck, access: Access) -> bool:
        """Tell whether processes meet after a test and before a site in one function."""
        steps = self.sequences.of(access.call_site.function)
        return any(step.sync_point and probe.span < step.span < access.span for step in steps)

    def synchronizes_at(self, access: Access) -> bool:
        """Tell whether the call that a site is seen from leads to what all processes must call."""
        steps = self.sequences.of(access.call_site.function)
        return any(step.sync_point and step.call_site is access.call_site for step in steps)

    def collectives(self, span: Span) -> tuple[str, ...]:
        """Give the calls within a span of the file asked for that lead to what all processes must call."""
        steps = self.each_acting(self.sequences.of)
        return tuple(dict.fromkeys(s.callee for s in steps if s.sync_point and span.covers(s.span)))

    def is_used_before(self, access: Access) -> bool:
        """Tell whether what a site deletes or moves is read before it, also in what its function calls."""
        path = access.path
        steps = () if path is None else self.sequences.of(access.call_site.function)
        earlier = itertools.takewhile(
            lambda step: (step.call_site, step.leaf_call) != (access.call_site, access.leaf_call), steps
        )
        read = (step.path for step in earlier if step.op in ASKING - LOOKING)
        return path is not None and any(each is not None and each.is_within(path) for each in read)

    def is_only_way_to(self, access: Access) -> bool:
        """Tell whether only the call that a site is seen from leads to it, and stands in the same file."""
        for call_site, then in itertools.pairwise(access.inlined_chain):
            ways = [edge.call_site for edge in self.entry_states.callers(then.function)]
            if ways != [call_site] or call_site.function.module is not then.function.module:
                return False
        return True

    def unordered(self) -> Iterator[UnorderedPair]:
        """Give acts of one process and of others on one path that nothing orders."""
        yield from self.each_acting(self._unordered_pairs.of)

    def vanishing(self) -> Iterator[VanishingFile]:
        """Give the reads of what was there, and what code of the project takes away."""
        yield from self.each_acting(self._vanishings.of)

    def listing_of(self, access: Access) -> DirectoryListing | None:
        """Give the call by which a process has found a path in a folder, where others find it as well."""
        listing = self._vanishings.listing(access.operation.path, access.leaf_call.state.scope)
        shared = listing is not None and listing.folder is not None and not listing.folder.rank_dependent
        return listing if shared else None

    def listed_then_deleted(self) -> Iterator[tuple[DirectoryListing, Access]]:
        """Give the deletes of what a process has found in a folder, and the call that listed it.

        Not those that were tested once more, nor those of which it is evident that all processes do them.
        """
        for access in self.accesses("delete"):
            listing = self.listing_of(access)
            by_all = access.certain and access.evidence is Evidence.EVIDENT
            if listing is not None and not by_all and self.probe_of(access) is None:
                yield listing, access

    def per_node(self) -> Iterator[PerNodeAccess]:
        """Give what one process of each node does where nodes may share the path, file by file."""
        yield from self.each_acting(self._per_node.of)

    def absences(self) -> Iterator[Absence]:
        """Give what one process makes on its node and those of others use, in the order of the code."""
        yield from self.each_acting(self._node_visibility.of)

    def polls(self) -> Iterator[Poll]:
        """Give the waits for a path by looking again and again, file by file in the order of the code."""
        yield from self.each(self._polling.of)

    def is_awaited(self, access: Access) -> bool:
        """Tell whether processes wait for the file of a site before they make it: then they share it."""
        root = access.leaf_access
        return any(
            poll.is_for_presence
            and root.comes_after(poll.access)
            and are_one_after_another(poll.access, root)
            for poll in self._polling.of(root.call_site.function)
        )

    def sleeps(self) -> Iterator[Sleep]:
        """Give the sleeps on which the order of processes hangs, file by file in the order of the code."""
        yield from self.each(self._sleeps.of)

    def tests_before_init(self, *ops: Op) -> Iterator[TestBeforeInit]:
        """Give the sites that only the first process should reach, and all reach for want of a group."""
        for access in self.accesses(*ops):
            vain = self._before_init.vain_test(access)
            if vain is not None:
                yield vain

    def idioms(self, span: Span) -> tuple[tuple[str, ...], ...]:
        """Give what a call in the file asked for could use as the file spells it, the nearest first.

        Args:
            span: The call.

        Returns:
            The tests for the first process of the job, and the barriers; none where no call stands there.
        """
        call_sites = (
            call_site for call_site in self.each(self.flows.call_sites) if call_site.call.span == span
        )
        idioms = (
            (self._idioms.tests(call_site), self._idioms.barriers(call_site)) for call_site in call_sites
        )
        return tuple(tuple(dict.fromkeys(found)) for found in next(idioms, ((), ())))

    def never_entered(self) -> Iterator[Misuse]:
        """Give the calls that make a context for several processes and drop it; `subject` is what it does."""
        yield from self.each(self._misused_helpers.never_entered)

    def eager(self) -> Iterator[Misuse]:
        """Give the calls that hand the result of a call to what runs a function in one process."""
        yield from self.each(self._misused_helpers.eager)
