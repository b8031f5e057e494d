"""Queries for filesystem accesses, and for the existence checks before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fsrace_lint.analysis.accesses.existence_checks import related
from fsrace_lint.analysis.callgraph.concurrency import ConcurrencyMarker, ConcurrencyTrace, Evidence
from fsrace_lint.analysis.dataflow.abstract_state import mutually_exclusive
from fsrace_lint.analysis.dataflow.process_set import Runs
from fsrace_lint.analysis.queries.linked import Linked
from fsrace_lint.files.spans import Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from fsrace_lint.analysis.accesses.model import Access, ExistenceCheck
    from fsrace_lint.analysis.dataflow.abstract_state import CallSite
    from fsrace_lint.analysis.paths.abstract_path import AbstractPath
    from fsrace_lint.catalog import Op


class AccessQueries(Linked):
    """Queries for accesses and existence checks."""

    def accesses(self, *ops: Op) -> Iterator[Access]:
        """Yield the accesses with the given operations in their own functions, in source order."""
        return (access for access in self.each_acting(self._accesses.direct) if access.op in ops)

    def instantiated(self, *ops: Op) -> Iterator[Access]:
        """Yield the accesses with the given operations in the functions that determine their paths.

        An access whose path the callers determine is yielded once for each such call, not in its own
        function.
        """
        return (access for access in self.each_acting(self._accesses.instantiated) if access.op in ops)

    def probe_then(self, *ops: Op, absent: bool) -> Iterator[tuple[ExistenceCheck, Access]]:
        """Yield the accesses that run only after an existence check of their path.

        Args:
            ops: The operations of the accesses.
            absent: Whether the check found the path missing. If False, it found the path present.

        Yields:
            The nearest such check before the access, and the access.
        """
        for access in self.accesses(*ops):
            probe = self._nearest(access.call_site, access.path, absent=absent)
            if probe is not None:
                yield probe, access

    def probe_of(self, access: Access) -> ExistenceCheck | None:
        """Return the nearest existence check of its path before an access, whatever its result."""
        return self._nearest(access.call_site, access.path)

    def probe_of_itself(self, access: Access) -> ExistenceCheck | None:
        """Return the check that found missing exactly the path that an access creates.

        After the access creates the path, other processes that run this check treat the path as complete.
        """
        probe = self.probe_of(access)
        return probe if probe is not None and probe.found_missing and probe.path == access.path else None

    def is_verified(self, access: Access) -> bool:
        """Return whether a check before an access also reads the file: it does not accept a partial one."""
        return self._accesses.tests.is_verified(access)

    def probe_where_done(self, access: Access, *, absent: bool) -> ExistenceCheck | None:
        """Return the nearest existence check of its path in the function that runs the operation itself."""
        done = access
        while done.callee_access is not None:
            done = done.callee_access
        return self._nearest(done.call_site, done.path, absent=absent)

    def created_after_check(self, *ops: Op) -> Iterator[tuple[ExistenceCheck, Access]]:
        """Yield the accesses that create a path after a check that found it missing.

        If the check is before the call that leads to the access, the access is yielded at that call, unless
        the callee has such a check too.

        Args:
            ops: The operations of the accesses.

        Yields:
            The nearest such check before the access, and the access.
        """
        for access in self._everywhere(ops):
            probe = self._missing(access)
            if probe is not None and not (
                access.callee_access and self.is_created_after_check(access.callee_access)
            ):
                yield probe, access

    def is_created_after_check(self, access: Access) -> bool:
        """Return whether `created_after_check` yields an access, here or in a callee."""
        if self._missing(access) is not None:
            return True
        return access.callee_access is not None and self.is_created_after_check(access.callee_access)

    def comes_in_order(self, access: Access) -> bool:
        """Return whether a context in the call chain to an access lets the first process run first."""
        return any(
            self.entry_states.protection.serializing_context(call_site) is not None
            for call_site in access.call_chain
        )

    def is_skipped_by_followers(self, access: Access) -> bool:
        """Return whether the first process runs an access first, after a check that found a path missing.

        The check can be for what the first process created, even if the path of the check does not show it.
        """
        ordered = access.is_serialized or self.comes_in_order(access)
        before = (
            probe
            for call_site in (*access.inlined_chain, *access.call_chain)
            for probe in self._accesses.tests.before(call_site)
        )
        return ordered and any(probe.found_missing for probe in before)

    def is_given_up_after(self, access: Access) -> bool:
        """Return whether an access is in an exception handler that then raises.

        If the access fails there, the function would have failed anyway.
        """
        flow, conditions = self.flows.flow(access.call_site.function), access.call_site.state.conditions
        caught = {each for each in conditions if each.attempt is not None and each.truth}
        if flow is None or not caught:
            return False
        before = flow.call_sites.index(access.call_site)
        later = (way.state.conditions for way in flow.exceptional_exits if way.position > before)
        return any(caught.issubset(way) and set(conditions).issuperset(way) for way in later)

    def fails_unnoticed(self, access: Access) -> bool:
        """Return whether an error of an access does no harm.

        Python ignores errors in a finalizer, and in a handler that raises, the function fails anyway.
        """
        names = (call_site.function.facts.name for call_site in access.inlined_chain)
        return "__del__" in names or self.is_given_up_after(access)

    def stands_among_processes(self, access: Access) -> bool:
        """Return whether multiple processes may run an access.

        Its file must also contain evidence of multiple processes, such as a rank check.
        """
        shown = self._accesses.evidence.markers.is_shown_in_file
        return access.evidence is not Evidence.NONE and shown(access.call_site.function)

    def created_beside(self, probe: ExistenceCheck, access: Access) -> Iterator[Access]:
        """Yield the accesses after the same check as an access that create a path in the same directory.

        Accesses with an existence check of their own are skipped.
        """
        for other in self._accesses.all_accesses(access.call_site.function):
            if (
                other.call_site is not access.call_site
                and other.op == access.op
                and self._missing(other) is None
                and _are_siblings(probe.path, other.path)
                and any(before.span == probe.span for before in self._accesses.tests.before(other.call_site))
            ):
                yield other

    def pairs(self, first: Container[Op], then: Container[Op]) -> Iterator[tuple[Access, Access]]:
        """Yield two accesses of one function in source order, where the second path is, or is in, the first.

        Args:
            first: The operations of the first access.
            then: The operations of the second access.

        Yields:
            The two accesses. Each second access comes with the nearest first access before it.
        """
        for found in self.each_acting(lambda function: (self._accesses.all_accesses(function),)):
            for index, access in enumerate(found):
                if access.op in then:
                    before = (other for other in reversed(found[:index]) if other.op in first)
                    other = next((other for other in before if are_one_after_another(other, access)), None)
                    if other is not None:
                        yield other, access

    def shown_by(self, before: Access | None, access: Access) -> Access:
        """Return an access with evidence `EVIDENT` if an earlier access to its path runs on one rank only.

        Args:
            before: The earlier access to the path, in the same function.
            access: The access.

        Returns:
            The access. Its trace ends at the call that runs on one rank only.
        """
        if before is None or before.runs is not Runs.ONE or access.evidence >= Evidence.LIKELY:
            return access
        place = Place(before.call_site.function.module.path, before.span)
        sign = ConcurrencyMarker(place, f"{before.callee} lets one process alone make it")
        return replace(access, shown=ConcurrencyTrace(Evidence.LIKELY, (), sign))

    def shown_by_one(self, access: Access) -> Access:
        """Return an access with evidence `EVIDENT` if there is such evidence for one of many processes."""
        if access.evidence >= Evidence.LIKELY:
            return access
        trace = self._accesses.evidence.trace(access.call_site, by_one=True)
        if trace.evidence < Evidence.LIKELY:
            return access
        return replace(access, shown=ConcurrencyTrace(Evidence.LIKELY, (), trace.marker))

    def resets(self) -> Iterator[tuple[Access, Access]]:
        """Yield the deletes of a path that the same function recreates as a directory, and the recreation."""
        for gone, made in self.pairs({"delete"}, {"mkdir", "copy"}):
            if made.op == "mkdir" or made.operation.tree:
                yield gone, made

    def is_reset(self, access: Access) -> bool:
        """Return whether multiple processes surely delete the tree at a path, and recreate the directory."""
        is_sure = access.operation.tree and access.certain and not access.is_one_of_group
        return is_sure and any(
            gone.call_site is access.call_site and made.is_contended for gone, made in self.resets()
        )

    def _everywhere(self, ops: Container[Op]) -> Iterator[Access]:
        """Yield the accesses with the given operations, and also the calls that pass them a path."""
        return (access for access in self.each_acting(self._accesses.all_accesses) if access.op in ops)

    def _nearest(
        self, call_site: CallSite, path: AbstractPath | None, *, absent: bool | None = None
    ) -> ExistenceCheck | None:
        probes = (
            probe
            for probe in self._accesses.tests.before(call_site)
            if absent is None or probe.found_missing == absent
        )
        return next((probe for probe in probes if related(probe.path, path)), None)

    def _missing(self, access: Access) -> ExistenceCheck | None:
        """Return the nearest check before an access that found missing what the access creates."""
        probes = tuple(self._accesses.tests.before(access.call_site))
        if any(
            not probe.found_missing and probe.asks_presence and probe.path == access.path for probe in probes
        ):
            return None
        for probe in probes:
            if probe.found_missing and related(probe.path, access.path) and _asks_for(probe, access):
                return probe
        return None

    def cached(self, *ops: Op) -> Iterator[tuple[ExistenceCheck | None, Access]]:
        """Yield the accesses that create a file for later reads, and the checks that found it missing.

        Args:
            ops: The operations of the accesses.

        Yields:
            The nearest such check, here or in a helper, or None; and the access, in the function that
            determines its path.
        """
        for access in self.instantiated(*ops):
            yield self._accesses.tests.wanting(access), access

    def _at_origin(self, access: Access) -> Access:
        """Return an access as its own function sees it, without the arguments of callers in its path."""
        own = self.entry_states.paths.normalize(access.operation.path, access.leaf_call.state.scope)
        return replace(access, call_site=access.leaf_call, path=own)

    def cache_test_of(self, access: Access) -> ExistenceCheck | None:
        """Return the nearest check before an access, here or in a helper, that found its path missing."""
        return self._accesses.tests.wanting(access)

    def moved_after(self, access: Access) -> Iterator[Access]:
        """Yield the renames, in the same function, of what an access creates, at their new paths."""
        for rename in self._accesses.direct(access.call_site.function):
            if rename.op != "rename" or rename.path is None or access.path is None:
                continue
            arrival = self._accesses.arrival(rename)
            if rename.path.is_within(access.path) and arrival is not None:
                yield arrival

    def file_deleted_for(self, access: Access) -> Access | None:
        """Return the delete of a file whose path an access then reuses, or None.

        The delete fails if the path is a directory. A delete that tolerates `FileNotFoundError` does not
        count.
        """
        for other in self._accesses.direct(access.call_site.function):
            plain = other.op == "delete" and not other.operation.tree and other.path is not None
            if plain and other.path == access.path and access.comes_after(other):
                return None if other.tolerates("FileNotFoundError") else other
        return None

    def is_staged(self, access: Access) -> bool:
        """Return whether what an access creates, or its parent directory, is renamed.

        The rename can be in the function of the access, or in the callee that runs the operation.
        """
        return any(
            rename.op == "rename"
            and rename.path is not None
            and seen.path is not None
            and seen.path.is_within(rename.path)
            for seen in (access, self._at_origin(access))
            for rename in self._accesses.direct(seen.call_site.function)
        )


def _asks_for(probe: ExistenceCheck, access: Access) -> bool:
    """Return whether a check asks for the existence of what an access creates, or of its parent directory.

    A check of the file type does not count.
    """
    if probe.path == access.path:
        return not probe.asks_kind or access.operation.tree or access.op == "link"
    below = access.path is not None and access.path.is_within(probe.path)
    return probe.asks_presence or not below


def _are_siblings(one: AbstractPath, other: AbstractPath | None) -> bool:
    """Return whether two paths are in the same directory, other than the current directory."""
    if other is None or one == other or len(one.components) == 1:
        return False
    return one.components[:-1] == other.components[:-1]


def are_one_after_another(first: Access, then: Access) -> bool:
    """Return whether one process can run both accesses, and the second path is, or is in, the first."""
    if first.path is None or then.path is None or first.call_site is then.call_site:
        return False
    same = then.path.is_within(first.path)
    return same and not mutually_exclusive(first.call_site.state.conditions, then.call_site.state.conditions)
