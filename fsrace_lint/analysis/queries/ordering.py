"""Queries for the order of ranks: barriers, collectives, polling, and sleeps."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.confidence import Confidence
from fsrace_lint.analysis.accesses.model import ASKING, LOOKING
from fsrace_lint.analysis.callgraph.chain_steps import place_of
from fsrace_lint.analysis.callgraph.concurrency import Evidence
from fsrace_lint.analysis.dataflow.process_set import TOP
from fsrace_lint.analysis.queries.accesses import AccessQueries, are_one_after_another
from fsrace_lint.analysis.synchronization.project_idioms import BARRIER, RANK_CHECK
from fsrace_lint.catalog.lexicon import may_save_with_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.accesses.vanishing_files import DirectoryListing, VanishingFile
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.synchronization.agreed_attributes import OneSidedAttribute
    from fsrace_lint.analysis.synchronization.event_sequences import SequenceItem
    from fsrace_lint.analysis.synchronization.model import Divergence, Misuse, TestBeforeInit
    from fsrace_lint.analysis.synchronization.node_visibility import Absence
    from fsrace_lint.analysis.synchronization.per_node import PerNodeAccess
    from fsrace_lint.analysis.synchronization.polling import Poll
    from fsrace_lint.analysis.synchronization.sleeps import Sleep
    from fsrace_lint.analysis.synchronization.unordered_pairs import UnorderedPair
    from fsrace_lint.catalog import Op
    from fsrace_lint.files.spans import Span

_USING: Final[frozenset[Op]] = frozenset({"extract", "copy", "rename", "link"})
"""The operations that read another path than the one that they change."""


NO_WORDS: Final = {
    "is_main_process": "no rank check is available here, and `helper-module` is not set",
    "barrier": "no barrier is available here, and `helper-module` is not set",
}
"""Why a fix has no words for what it adds, by the helper that it would call."""


class OrderingQueries(AccessQueries):
    """Queries for the order between ranks."""

    def divergent(self) -> Iterator[Divergence]:
        """Yield the collectives that some ranks skip, in source order."""
        for divergence in self.each_acting(self._divergences.of):
            yield replace(divergence, sync_point=self._traced(divergence.sync_point))

    def one_sided_attributes(self) -> Iterator[OneSidedAttribute]:
        """Yield the attributes that all ranks must read or set together, and that only some ranks do."""
        for found in self.each(self._agreed_attributes.of):
            yield replace(found, event=self._traced(found.event))

    def _traced(self, item: SequenceItem) -> SequenceItem:
        """Return an event of one of many ranks with the evidence for them.

        A collective, or a check of the rank, is itself evidence, but it also works in one process.
        """
        trace = self._accesses.evidence.trace(item.call_site, by_one=True)
        evidence = max(trace.evidence, Evidence.LIKELY)
        return replace(
            item,
            evidence=evidence,
            call_chain=trace.call_chain,
            marker=trace.marker,
            doubt=trace.doubt,
        )

    def is_synchronized_between(self, probe: ExistenceCheck, access: Access) -> bool:
        """Return whether a sync point lies between a check and an access in one function."""
        steps = self.sequences.of(access.call_site.function)
        return any(step.sync_point and probe.span < step.span < access.span for step in steps)

    def synchronizes_at(self, access: Access) -> bool:
        """Return whether the call at which an access is reported also reaches a sync point."""
        steps = self.sequences.of(access.call_site.function)
        return any(step.sync_point and step.call_site is access.call_site for step in steps)

    def collectives(self, span: Span) -> tuple[str, ...]:
        """Return the calls within a span of the files to report on that reach a sync point."""
        steps = self.each_acting(self.sequences.of)
        return tuple(dict.fromkeys(s.callee for s in steps if s.sync_point and span.covers(s.span)))

    def is_used_before(self, access: Access) -> bool:
        """Return whether the path of an access is read earlier in its function or its callees."""
        path = access.path
        steps = () if path is None else self.sequences.of(access.call_site.function)
        earlier = itertools.takewhile(
            lambda step: (step.call_site, step.leaf_call) != (access.call_site, access.leaf_call), steps
        )
        read = (step.path for step in earlier if step.op in ASKING - LOOKING)
        return path is not None and any(each is not None and each.is_within(path) for each in read)

    def highest_confidence(self, access: Access) -> Confidence:
        """Return the highest confidence that the order of the processes allows for an access.

        It is low if the other processes find what one process made in a hook before, or before it started
        them; or if all of them wait between a download and the first read.
        """
        is_late = self._skips(access) and (self._precedes_ranks(access) or self._is_awaited_by_all(access))
        return Confidence.LOW if is_late or self._prepared_data.holds(access) else Confidence.HIGH

    def _is_awaited_by_all(self, access: Access) -> bool:
        """Return whether all processes wait for each other after a download, and before they read it.

        Those that download it at the same time write the same.
        """
        if access.op not in {"download", "extract"} or access.operation.skips:
            return False
        steps = self.sequences.of(access.call_site.function)
        here, before = (access.call_site, access.leaf_call), access.call_site.state.conditions
        tests = {each for each in before if any(self._accesses.tests.among([each], access.call_site.call))}
        asks_for_job = self._accesses.evidence.markers.asks_for_job
        places = (i for i, step in enumerate(steps) if (step.call_site, step.leaf_call) == here)
        for step in steps[next(places, len(steps)) :]:
            reads = step.op in ASKING - LOOKING
            if reads and (step.path is None or access.path is None or step.path.is_within(access.path)):
                return False
            if step.op in _USING and (step.call_site, step.leaf_call) != here:
                return False
            own = [each for each in step.conditions if each not in before and not asks_for_job(each)]
            waits = step.sync_point and step.processes == TOP and not step.is_of_group
            if waits and not own and tests.isdisjoint(step.conditions):
                return True
        return False

    def _skips(self, access: Access) -> bool:
        """Return whether a process skips an access if the path exists."""
        return access.operation.skips or self.cache_test_of(access) is not None

    def _precedes_ranks(self, access: Access) -> bool:
        """Return whether an access runs before the program starts its other ranks, unless all are launched.

        They run it later, and find what the first process has made.
        """
        marker = access.marker if access.evidence is Evidence.EVIDENT else None
        for start in self._rank_starts.after((access.call_site, *access.call_chain)):
            if marker is None or marker.place == place_of(start.function, start.call.span):
                return True
        return False

    def is_only_way_to(self, access: Access) -> bool:
        """Return whether an access can be reached only through the call at which it is reported.

        All calls on the way must be in the same file.
        """
        for call_site, then in itertools.pairwise(access.inlined_chain):
            ways = [edge.call_site for edge in self.entry_states.callers(then.function)]
            if ways != [call_site] or call_site.function.module is not then.function.module:
                return False
        return True

    def why_not_on_one_rank(self, access: Access, at: CallSite) -> str:
        """Return why a rank check around an operation would be wrong, or an empty string.

        Args:
            access: The operation.
            at: The call that gets the rank check: the reported one, or the one that runs the operation.
        """
        if self._one_rank.is_read_by_callers(access):
            return "a caller reads the path on every rank, and needs a barrier before"
        own = self._project_idioms.forms(RANK_CHECK, at, None)
        tests = self._idioms.tests(at), own, self._idioms.framework_tests(at)
        return self._one_rank.why_not_checked(access) or self._why_no_words(at, "is_main_process", *tests)

    def may_save_with_all(self, access: Access) -> bool:
        """Return whether the call of an access may be a save that every rank must make, by its name."""
        return may_save_with_all(access.callee)

    def is_result_used(self, access: Access) -> bool:
        """Return whether code uses the result of the call that runs an operation."""
        return self._one_rank.is_result_used(access)

    def why_no_barrier(self, *at: CallSite, check: Span | None = None) -> str:
        """Return why a barrier next to a call would be wrong, or an empty string.

        Args:
            at: The call. If it is in a callee, the calls that lead there come first.
            check: The rank check around the call. The barrier is outside of its branch.
        """
        reasons = (self._one_rank.why_no_barrier(call_site, check) for call_site in at)
        last, idioms = at[-1], self._idioms
        own = self._project_idioms.forms(BARRIER, last, None)
        barriers = idioms.barriers(last), own, idioms.framework_barriers(last)
        return next(filter(None, reasons), "") or self._why_no_words(last, "barrier", *barriers)

    def is_read_later(self, access: Access) -> bool:
        """Return whether the same function reads what an access writes, before ranks wait for each other."""
        return self._one_rank.is_read_here(access)

    def unordered(self) -> Iterator[UnorderedPair]:
        """Yield two accesses to one path, by one process and by others, without a sync point in between."""
        for pair in self.each_acting(self._unordered_pairs.of):
            yield replace(pair, before=self._traced(pair.before), after=self._traced(pair.after))

    def vanishing(self) -> Iterator[VanishingFile]:
        """Yield the reads after an existence check or a listing, and the code that can delete the path."""
        yield from self.each_acting(self._vanishings.of)

    def listing_of(self, access: Access) -> DirectoryListing | None:
        """Return the call that listed the path of an access in a shared directory, or None."""
        listing = self._vanishings.listing(access.operation.path, access.leaf_call.state.scope)
        shared = listing is not None and listing.folder is not None and not listing.folder.rank_dependent
        return listing if shared else None

    def listed_then_deleted(self) -> Iterator[tuple[DirectoryListing, Access]]:
        """Yield the deletes of paths from a directory listing, and the listing.

        Deletes after another existence check are skipped, and deletes that all ranks certainly run.
        """
        for access in self.accesses("delete"):
            listing = self.listing_of(access)
            by_all = access.certain and access.evidence >= Evidence.LIKELY
            if listing is not None and not by_all and self.probe_of(access) is None:
                yield listing, access

    def per_node(self) -> Iterator[PerNodeAccess]:
        """Yield the accesses that one process of each node runs on a path that nodes may share."""
        yield from self.each_acting(self._per_node.of)

    def absences(self) -> Iterator[Absence]:
        """Yield what one process creates on its node and processes of other nodes use, in source order."""
        yield from self.each_acting(self._node_visibility.of)

    def polls(self) -> Iterator[Poll]:
        """Yield the waits that poll for a path, in source order."""
        yield from self.each(self._polling.of)

    def is_awaited(self, access: Access) -> bool:
        """Return whether a process waits for the file of an access before it creates the file.

        If so, processes share the file.
        """
        root = access.leaf_access
        return any(
            poll.is_for_presence
            and root.comes_after(poll.access)
            and are_one_after_another(poll.access, root)
            for poll in self._polling.of(root.call_site.function)
        )

    def sleeps(self) -> Iterator[Sleep]:
        """Yield the sleeps that the order of ranks depends on, in source order."""
        yield from self.each(self._sleeps.of)

    def tests_before_init(self, *ops: Op) -> Iterator[TestBeforeInit]:
        """Yield the accesses that are guarded by a rank check that is true on every rank.

        The check is true because it runs before the process group is initialized.
        """
        for access in self.accesses(*ops):
            vain = self._before_init.vain_test(access)
            if vain is not None:
                yield vain

    def idioms(self, span: Span) -> tuple[tuple[str, ...], ...]:
        """Return the rank checks and barriers that are visible at a call.

        Args:
            span: The call.

        Returns:
            The checks for rank 0, and the barriers: those of the file and of objects, nearest first. Then
            those of modules that need a process group. Empty if no call has this span.
        """
        call_site = self._call_at(span)
        if call_site is None:
            return (), (), (), ()
        idioms = self._idioms
        found = (idioms.tests, idioms.barriers, idioms.framework_tests, idioms.framework_barriers)
        return tuple(tuple(dict.fromkeys(find(call_site))) for find in found)

    def own_helpers(self, kind: str, span: Span, chosen: str | None) -> tuple[tuple[str, str, bool], ...]:
        """Return the imports by which the file of a call can use a helper of the project, best first.

        Args:
            kind: The key of the helper in the settings, such as `barrier`.
            span: The call.
            chosen: The dotted name that the settings give, or None.

        Returns:
            The module of each, which may be relative, the name, and whether it is the chosen one.
        """
        call_site = self._call_at(span)
        return () if call_site is None else tuple(self._project_idioms.forms(kind, call_site, chosen))

    def has_function(self, name: str) -> bool:
        """Return whether the project, or a library that a file imports, provides a dotted name."""
        return self._project_idioms.exists(name)

    def _call_at(self, span: Span) -> CallSite | None:
        found = (self._project_idioms.calls_in(module).get(span) for module in self.targets)
        return next((call_site for call_site in found if call_site is not None), None)

    def has_helper(self, call_site: CallSite, helper: str) -> bool:
        """Return whether the settings name a module with a helper for the file of a call."""
        named = self._helpers.get(call_site.function.module.relative, frozenset())
        return named is None or helper in named

    def _why_no_words(self, call_site: CallSite, helper: str, *kinds: Iterator[object]) -> str:
        """Return why a fix cannot spell a rank check or a barrier at a call, or an empty string."""
        words = itertools.chain.from_iterable(kinds)
        if self.has_helper(call_site, helper) or any(True for _ in words):
            return ""
        return NO_WORDS[helper]

    def never_entered(self) -> Iterator[Misuse]:
        """Yield the calls that create a synchronizing context manager and do not enter it.

        The `subject` of each result says what entering the context would do.
        """
        yield from self.each(self._misused_helpers.never_entered)

    def eager(self) -> Iterator[Misuse]:
        """Yield the calls that pass the result of a call to a run-once helper, instead of the function."""
        yield from self.each(self._misused_helpers.eager)
